"""Networks of attention: BERT, GPT-2, a Llama block, ViT, a mixture of experts, a diffusion block."""
