"""A few lines of each language that is shown in colours, with what is easy to get wrong."""

from __future__ import annotations

CODE = {
    "relay": 'def @main(%x: Tensor[(2), float32], type=1) { /* a /* b */ c */ nn.relu(%x.y) // "no"\n'
    '  let %s = "a // b"; if (True) { meta[relay.Constant][0] } else { -2.5e-3f } }',
    "loops": 'for panel in block:  # 10 columns\n  acc[r, c] += max(x[row r, k], 0.5f) # by "name"',
    "llvm": "define void @f(ptr %args) #0 {\nentry:\n  %v = load <4 x float>, ptr %args, align 16 ; here\n"
    '  br i1 true, label %loop8, label %done9\n  call void @"odd name"()\n}',
    "assembly": "main:\n\t.p2align 4\n\tvmovups 64(%rdi), %zmm0 # spill\n\tadd x0, x1, #12\n.LBB0_1:\n\tjl .LBB0_1\n"
    "\tmovl $-8, %eax",
}
