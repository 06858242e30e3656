"""Small networks of the kinds that people bring: each with inputs."""
# ruff: noqa: E501 (a case a cell)

from __future__ import annotations

from pytorch_tools import torch

nn = torch.nn
F = nn.functional


def conv(inside: int, outside: int, kernel: int = 3, act=nn.ReLU, **more):
    return nn.Sequential(
        nn.Conv2d(inside, outside, kernel, padding=kernel // 2, bias=False, **more), nn.BatchNorm2d(outside), act()
    )


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), conv(8, 8), nn.Conv2d(8, 8, 3, padding=1)
        self.norm, self.head = nn.BatchNorm2d(8), nn.Linear(8, 5)

    def forward(self, x):
        x = self.stem(x)
        x = F.relu(x + self.norm(self.b(self.a(x))))
        x = F.adaptive_avg_pool2d(F.max_pool2d(x, 2), 1)
        return self.head(torch.flatten(x, 1))


class Squeezed(nn.Module):
    """An inverted residual block with squeeze and excitation."""

    def __init__(self):
        super().__init__()
        self.up, self.depth = conv(8, 16, 1, nn.Hardswish), conv(16, 16, 3, nn.Hardswish, groups=16)
        self.less, self.more, self.down = nn.Conv2d(16, 4, 1), nn.Conv2d(4, 16, 1), conv(16, 8, 1, nn.Identity)

    def forward(self, x):
        y = self.depth(self.up(x))
        gate = F.hardsigmoid(self.more(F.relu(self.less(y.mean((2, 3), keepdim=True)))))
        return x + self.down(y * gate)


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([conv(4 + 4 * k, 4) for k in range(3)])
        self.pool = nn.AvgPool2d(2)

    def forward(self, x):
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return self.pool(x)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = conv(4, 3, 1), nn.Sequential(conv(4, 2, 1), conv(2, 3, 5)), conv(4, 2, 1)

    def forward(self, x):
        return torch.cat([self.a(x), self.b(x), self.c(F.max_pool2d(x, 3, 1, 1)), F.avg_pool2d(x, 3, 1, 1)], 1)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.mid, self.up = conv(3, 4), conv(4, 8), nn.ConvTranspose2d(8, 4, 2, 2)
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.down(x)
        b = self.up(self.mid(F.max_pool2d(a, 2)))
        c = F.interpolate(F.interpolate(b, scale_factor=0.5, mode="bilinear"), scale_factor=2)
        return self.out(torch.cat([a, b + c], 1))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool = False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = self.qkv(x).view(n, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(n, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool = False):
        super().__init__()
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.attention(self.one(x))
        return x + self.mlp(self.two(x))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches, self.token = nn.Conv2d(3, 16, 4, 4), nn.Parameter(torch.randn(1, 1, 16))
        self.place, self.block, self.head = nn.Parameter(torch.randn(1, 5, 16)), Block(16, 2), nn.Linear(16, 3)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.head(self.block(x)[:, 0])


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(11, 16), nn.Embedding(8, 16)
        self.block, self.norm = Block(16, 2, True), nn.LayerNorm(16)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        return self.norm(self.block(x)) @ self.words.weight.t()


class BERT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.kinds = nn.Embedding(11, 16, padding_idx=0), nn.Embedding(2, 16)
        self.layer = nn.MultiheadAttention(16, 4, batch_first=True)
        self.norm, self.pool = nn.LayerNorm(16), nn.Linear(16, 16)

    def forward(self, ids, kinds):
        x = self.words(ids) + self.kinds(kinds)
        x = self.norm(x + self.layer(x, x, x, key_padding_mask=ids == 0)[0])
        return torch.tanh(self.pool(x[:, 0]))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True), nn.GRU(10, 4, batch_first=True)

    def forward(self, x):
        return self.gru(self.lstm(x)[0])[0][:, -1]


class ConvNeXt(nn.Module):
    def __init__(self):
        super().__init__()
        self.depth, self.norm = nn.Conv2d(8, 8, 7, padding=3, groups=8), nn.LayerNorm(8)
        self.up, self.down, self.scale = nn.Linear(8, 16), nn.Linear(16, 8), nn.Parameter(torch.full((8,), 0.1))

    def forward(self, x):
        y = self.norm(self.depth(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(F.gelu(self.up(y)))).permute(0, 3, 1, 2)


class Windows(nn.Module):
    """Attention in shifted windows."""

    def __init__(self):
        super().__init__()
        self.attention, self.norm = Attention(8, 2), nn.LayerNorm(8)

    def forward(self, x):
        n, h, w, c = x.shape
        y = torch.roll(self.norm(x), (-2, -2), (1, 2)).view(n, h // 4, 4, w // 4, 4, c)
        y = self.attention(y.permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c))
        y = y.view(n, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
        return x + torch.roll(y, (2, 2), (1, 2))


def vgg():
    return nn.Sequential(
        conv(3, 4), nn.MaxPool2d(2), conv(4, 8), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(), nn.Linear(32, 5)
    )


def image(channels: int = 3):
    return (torch.randn(2, channels, 8, 8),)


NETWORKS = {
    "residual": lambda: (Residual(), image()), "squeezed": lambda: (Squeezed(), image(8)), "vgg": lambda: (vgg(), image()),
    "dense": lambda: (Dense(), image(4)), "branches": lambda: (Branches(), image(4)), "unet": lambda: (UNet(), image()),
    "vit": lambda: (ViT(), image()), "gpt": lambda: (GPT(), (torch.randint(0, 11, (2, 6)),)),
    "bert": lambda: (BERT(), (torch.tensor([[3, 4, 5, 0], [1, 2, 0, 0]]), torch.tensor([[0, 0, 1, 1]] * 2))),
    "recurrent": lambda: (Recurrent(), (torch.randn(2, 4, 6),)), "convnext": lambda: (ConvNeXt(), image(8)),
    "windows": lambda: (Windows(), (torch.randn(2, 8, 8, 8),)),
    "separable": lambda: (nn.Sequential(conv(8, 8, 3, nn.ReLU6, groups=8), conv(8, 6, 1, nn.SiLU)), image(8)),
}  # fmt: skip
