"""Four models as libraries of transformers and of diffusion write them, from torch.nn alone: each with inputs."""

from __future__ import annotations

import math

from pytorch_tools import torch

nn = torch.nn
F = nn.functional


class RMSNorm(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


class Rotary(nn.Module):
    """Cosines and sines of each position, by a table that is no parameter."""

    def __init__(self, width: int):
        super().__init__()
        self.register_buffer("speed", 1.0 / 10000 ** (torch.arange(0, width, 2).float() / width), persistent=False)

    @torch.no_grad()
    def forward(self, x, positions):
        speed = self.speed[None, :, None].expand(positions.shape[0], -1, 1)
        with torch.autocast(device_type="cpu", enabled=False):
            angles = (speed @ positions[:, None, :].float()).transpose(1, 2)
            angles = torch.cat((angles, angles), dim=-1)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


def rotated(x, cos, sin):
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * cos.unsqueeze(1) + turned * sin.unsqueeze(1)


class CachedAttention(nn.Module):
    """Grouped queries; keys and values of former steps come in and go out again."""

    def __init__(self, width: int, heads: int, groups: int):
        super().__init__()
        self.each, self.repeats = width // heads, heads // groups
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(width, groups * self.each, bias=False) for _ in range(2))
        self.o_proj = nn.Linear(width, width, bias=False)

    def wide(self, x):
        n, groups, length, each = x.shape
        return x[:, :, None].expand(n, groups, self.repeats, length, each).reshape(n, -1, length, each)

    def forward(self, x, angles, mask, keys, values):
        shape = (*x.shape[:-1], -1, self.each)
        q, k, v = (p(x).view(shape).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = rotated(q, *angles), rotated(k, *angles)
        keys, values = torch.cat((keys, k), dim=2), torch.cat((values, v), dim=2)
        out = F.scaled_dot_product_attention(q, self.wide(keys), self.wide(values), attn_mask=mask)
        return self.o_proj(out.transpose(1, 2).reshape(*x.shape[:-1], -1)), keys, values


class Decoder(nn.Module):
    def __init__(self, width: int = 32, heads: int = 4, groups: int = 2):
        super().__init__()
        self.rotary = Rotary(width // heads)
        self.before, self.after = RMSNorm(width), RMSNorm(width)
        self.attention = CachedAttention(width, heads, groups)
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x, padding, keys, values):
        past, new = keys.shape[2], x.shape[1]
        positions = (padding.cumsum(-1) - 1).clamp(min=0)[:, past:]
        causal = torch.ones(new, past + new, dtype=torch.bool).tril(past)
        mask = causal & padding[:, None, None, :].bool()
        mask = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)
        more, keys, values = self.attention(self.before(x), self.rotary(x, positions), mask, keys, values)
        x = x + more
        y = self.after(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y)), keys, values


class Layer(nn.Module):
    """A layer of an encoder with layer scale; attention written out."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.scale = nn.Parameter(torch.full((width,), 0.3))
        self.fc1, self.fc2 = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).permute(0, 2, 1, 3)

    def forward(self, x):
        y = self.norm1(x)
        q, k, v = self.split(self.query(y)), self.split(self.key(y)), self.split(self.value(y))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
        context = torch.einsum("bhij,bhjd->bihd", F.softmax(scores, dim=-1, dtype=torch.float32), v).flatten(2)
        x = x + self.scale * self.output(context)
        return x + F.dropout(self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh")), 0.1, self.training)


class VisionTransformer(nn.Module):
    """Places were learned for another size of images: they are resized."""

    def __init__(self, width: int = 24, learned: int = 3):
        super().__init__()
        self.projection = nn.Conv2d(3, width, kernel_size=4, stride=4)
        self.token, self.places = (nn.Parameter(torch.randn(1, n, width)) for n in (1, 1 + learned**2))
        self.layers = nn.ModuleList([Layer(width, 3) for _ in range(2)])
        self.norm, self.classifier = nn.LayerNorm(width), nn.Linear(2 * width, 5)

    def resized(self, height: int, width: int):
        side = math.isqrt(self.places.shape[1] - 1)
        grid = self.places[:, 1:].reshape(1, side, side, -1).permute(0, 3, 1, 2)
        grid = F.interpolate(grid, size=(height, width), mode="bicubic", align_corners=False)
        return torch.cat((self.places[:, :1], grid.permute(0, 2, 3, 1).flatten(1, 2)), dim=1)

    def forward(self, pixels):
        x = self.projection(pixels)
        places = self.resized(*x.shape[-2:])
        x = torch.cat((self.token.expand(pixels.shape[0], -1, -1), x.flatten(2).transpose(1, 2)), dim=1) + places
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        return self.classifier(torch.cat((x[:, 0], x[:, 1:].mean(dim=1)), dim=-1))


class ChannelNorm(nn.Module):
    """Layer norm over the channels of images, written out."""

    def __init__(self, channels: int):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.rand(channels) + 0.5), nn.Parameter(torch.randn(channels))

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        spread = (x - mean).pow(2).mean(1, keepdim=True)
        x = (x - mean) / torch.sqrt(spread + 1e-6)
        return self.weight[:, None, None] * x + self.bias[:, None, None]


class ConvBlock(nn.Module):
    """Depthwise convolution, a narrow-wide-narrow pair with global response normalization (Woo et al., 2023)."""

    def __init__(self, channels: int):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, kernel_size=7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.wide, self.narrow = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.gamma, self.beta = (nn.Parameter(torch.randn(1, 1, 1, 4 * channels)) for _ in range(2))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = F.gelu(self.wide(y))
        size = torch.linalg.vector_norm(y, ord=2, dim=(1, 2), keepdim=True)
        y = self.gamma * (y * (size / (size.mean(dim=-1, keepdim=True) + 1e-6))) + self.beta + y
        return x + self.narrow(y).permute(0, 3, 1, 2)


class ConvNet(nn.Module):
    def __init__(self, channels: tuple[int, ...] = (8, 12)):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, channels[0], 4, 4), ChannelNorm(channels[0]))
        self.first, self.second = ConvBlock(channels[0]), ConvBlock(channels[1])
        self.smaller = nn.Sequential(ChannelNorm(channels[0]), nn.Conv2d(*channels, 2, 2))
        self.norm, self.head = nn.LayerNorm(channels[1]), nn.Linear(channels[1], 5)

    def forward(self, x):
        x = self.second(self.smaller(self.first(self.stem(x))))
        return self.head(self.norm(x.mean([-2, -1]))).log_softmax(-1)


def timing(steps, width: int):
    """Steps as cosines and sines of growing length of wave."""
    speed = torch.exp(-math.log(10000) * torch.arange(width // 2, dtype=torch.float32) / (width // 2 - 1))
    angles = steps[:, None].float() * speed[None]
    return F.pad(torch.cat([angles.sin(), angles.cos()], dim=-1), (0, width % 2))


class ResBlock(nn.Module):
    """Shifted and scaled by what the step of time says."""

    def __init__(self, inside: int, outside: int, time: int):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, inside), nn.Conv2d(inside, outside, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(4, outside), nn.Conv2d(outside, outside, 3, padding=1)
        self.time = nn.Linear(time, 2 * outside)
        self.short = nn.Conv2d(inside, outside, 1) if inside != outside else nn.Identity()

    def forward(self, x, t):
        y = self.conv1(F.silu(self.norm1(x)))
        scale, shift = self.time(F.silu(t))[:, :, None, None].chunk(2, dim=1)
        y = self.norm2(y) * (1 + scale) + shift
        return self.short(x) + self.conv2(F.silu(y))


class PixelAttention(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.norm, self.qkv = nn.GroupNorm(1, channels), nn.Conv1d(channels, 3 * channels, 1)
        self.out = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        flat = x.flatten(2)
        q, k, v = self.qkv(self.norm(flat)).tensor_split(3, dim=1)
        weight = torch.softmax(torch.baddbmm(torch.zeros(1), q.mT, k, beta=0, alpha=x.shape[1] ** -0.5), dim=-1)
        return (flat + self.out(torch.bmm(v, weight.mT))).view_as(x)


class Denoiser(nn.Module):
    def __init__(self, channels: int = 8, time: int = 13):
        super().__init__()
        self.width, self.times = time, nn.Sequential(nn.Linear(time, 16), nn.SiLU(), nn.Linear(16, 16))
        self.begin, self.down1 = nn.Conv2d(3, channels, 3, padding=1), ResBlock(channels, channels, 16)
        self.smaller, self.down2 = nn.Conv2d(channels, channels, 3, 2, 1), ResBlock(channels, 2 * channels, 16)
        self.middle, self.up1 = PixelAttention(2 * channels), ResBlock(4 * channels, channels, 16)
        self.larger, self.up2 = nn.Conv2d(channels, channels, 3, padding=1), ResBlock(2 * channels, channels, 16)
        self.end = nn.Sequential(nn.GroupNorm(2, channels), nn.SiLU(), nn.Conv2d(channels, 3, 3, padding=1))

    def forward(self, x, steps):
        t = self.times(timing(steps, self.width))
        first = self.down1(self.begin(x), t)
        second = self.down2(self.smaller(first), t)
        y = self.up1(torch.cat([self.middle(second), second], dim=1), t)
        y = self.larger(F.interpolate(y, size=first.shape[-2:], mode="nearest"))
        return self.end(self.up2(torch.cat((y, first), 1), t))


def decoder():
    padding = torch.tensor([[0, 1, 1, 1, 1, 1, 1, 1], [1] * 8])
    past = [torch.randn(2, 2, 5, 8) for _ in range(2)]
    return Decoder(), (torch.randn(2, 3, 32), padding, *past)


MODELS = {
    "decoder": decoder,
    "vit": lambda: (VisionTransformer(), (torch.randn(2, 3, 16, 20),)),
    "convnext": lambda: (ConvNet(), (torch.randn(2, 3, 16, 24),)),
    "unet": lambda: (Denoiser(), (torch.randn(2, 3, 10, 10), torch.tensor([3, 250]))),
}

LINES = {
    "decoder": [
        ("rsqrt", "before at ", "wide * torch.rsqrt(wide"),
        ("cos", "rotary at ", "return angles.cos()"),  # under torch.no_grad
        ("nn.batch_matmul", "rotary at ", "angles = (speed @ positions"),  # under autocast in it
        ("nn.softmax", "attention at ", "out = F.scaled_dot_product_attention("),
        ("nn.dense", "attention.k_proj at ", "for p in (self.q_proj, self.k_proj"),
        ("cumsum", "", "positions = (padding.cumsum("),
        ("sigmoid", "", "self.down(F.silu("),
    ],
    "vit": [
        ("nn.conv2d", "projection at ", "x = self.projection(pixels)"),
        ("image.resize2d", "", "places = self.resized("),
        ("nn.softmax", "layers.1 at ", "context = torch.einsum("),
        ("sigmoid", "layers.0 at ", "F.gelu(self.fc1("),
        ("nn.dense", "classifier at ", "return self.classifier("),
    ],
    "convnext": [
        ("divide", "stem.1 at ", "x = (x - mean) / torch.sqrt(spread"),
        ("nn.conv2d", "smaller.1 at ", "self.second(self.smaller("),
        ("sum", "second at ", "size = torch.linalg.vector_norm("),
        ("erf", "first at ", "y = F.gelu(self.wide(y))"),
        ("nn.log_softmax", "", "return self.head(self.norm("),
    ],
    "unet": [
        ("sin", "", "t = self.times(timing("),
        ("nn.group_norm", "down2.norm1 at ", "y = self.conv1(F.silu(self.norm1(x)))"),
        ("split", "up1 at ", "scale, shift = self.time("),
        ("nn.softmax", "middle at ", "weight = torch.softmax("),
        ("nn.conv2d", "end.2 at ", "return self.end("),
    ],
}
"""Of some operators: the module that a span must name, and what stands in the line that it points at."""
