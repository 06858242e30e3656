"""TempOpAttr: an operator's registered fact, changed for the length of a block."""

from __future__ import annotations

from relaylab.ir import Op


class TempOpAttr:
    """`with TempOpAttr("nn.conv2d", "FTVMLegalize", rule): …` sets a fact and puts the old one back."""

    def __init__(self, op_name: str, attr_key: str, attr_value: object):
        self.op, self.attr_key, self.attr_value = Op.get(op_name), attr_key, attr_value

    def __enter__(self) -> TempOpAttr:
        self.older_attr = self.op.get_attr(self.attr_key)
        self.op.reset_attr(self.attr_key)
        self.op.set_attr(self.attr_key, self.attr_value)
        return self

    def __exit__(self, *exc: object) -> None:
        self.op.reset_attr(self.attr_key)
        if self.older_attr:
            self.op.set_attr(self.attr_key, self.older_attr)
