# timing and counting instruments around ConvertLayout
import tvm
import tvm.relay as relay
from tvm.relay.testing import resnet

from tvm.relay.build_module import bind_params_by_name
from tvm.ir.instrument import (
    PassTimingInstrument,
    pass_instrument,
)
batch_size = 1
num_of_image_class = 10
image_shape = (3, 28, 28)
output_shape = (batch_size, num_of_image_class)
relay_mod, relay_params = resnet.get_workload(num_layers=20, batch_size=1, num_classes=10, image_shape=image_shape)
print(relay_mod.astext(show_meta_data=False)[:300])
timing_inst = PassTimingInstrument()
with tvm.transform.PassContext(instruments=[timing_inst]):
    relay_mod = relay.transform.InferType()(relay_mod)
    relay_mod = relay.transform.FoldScaleAxis()(relay_mod)
    profiles = timing_inst.render()
print("Printing results of timing profile...")
print(profiles)
cur_pass_ctx = tvm.transform.PassContext.current()
cur_pass_ctx.override_instruments([timing_inst])
relay_mod = relay.transform.InferType()(relay_mod)
relay_mod = relay.transform.FoldScaleAxis()(relay_mod)
profiles = timing_inst.render()
print(profiles)
cur_pass_ctx.override_instruments([])
@pass_instrument
class RelayCallNodeDiffer:
    def __init__(self):
        self._op_diff = []
        self._op_cnt_before_stack = []
    def enter_pass_ctx(self):
        self._op_diff = []
        self._op_cnt_before_stack = []
    def exit_pass_ctx(self):
        assert len(self._op_cnt_before_stack) == 0, "The stack is not empty. Something wrong."
    def run_before_pass(self, mod, info):
        self._op_cnt_before_stack.append((info.name, self._count_nodes(mod)))
    def run_after_pass(self, mod, info):
        name_before, op_to_cnt_before = self._op_cnt_before_stack.pop()
        assert name_before == info.name, "name_before: {}, info.name: {} doesn't match".format(name_before, info.name)
        cur_depth = len(self._op_cnt_before_stack)
        op_to_cnt_after = self._count_nodes(mod)
        op_diff = self._diff(op_to_cnt_after, op_to_cnt_before)
        if op_diff:
            self._op_diff.append((cur_depth, info.name, op_diff))
    def get_pass_to_op_diff(self):
        return self._op_diff
    @staticmethod
    def _count_nodes(mod):
        ret = {}
        def visit(node):
            if isinstance(node, relay.expr.Call):
                if hasattr(node.op, "name"):
                    op_name = node.op.name
                else:
                    return
                ret[op_name] = ret.get(op_name, 0) + 1
        relay.analysis.post_order_visit(mod["main"], visit)
        return ret
    @staticmethod
    def _diff(d_after, d_before):
        ret = {}
        key_after, key_before = set(d_after), set(d_before)
        for k in key_before & key_after:
            tmp = d_after[k] - d_before[k]
            if tmp:
                ret[k] = d_after[k] - d_before[k]
        for k in key_after - key_before:
            ret[k] = d_after[k]
        for k in key_before - key_after:
            ret[k] = -d_before[k]
        return ret
call_node_inst = RelayCallNodeDiffer()
desired_layouts = {"nn.conv2d": ["NHWC", "HWIO"]}
pass_seq = tvm.transform.Sequential([
    relay.transform.FoldConstant(),
    relay.transform.ConvertLayout(desired_layouts),
    relay.transform.FoldConstant(),
])
relay_mod["main"] = bind_params_by_name(relay_mod["main"], relay_params)
with tvm.transform.PassContext(opt_level=3, instruments=[timing_inst, call_node_inst]):
    relay_mod = pass_seq(relay_mod)
    profiles = timing_inst.render()
print(profiles)
for p in call_node_inst.get_pass_to_op_diff(): print(p)
@pass_instrument
class PassExampleBase:
    def __init__(self, name):
        self._name = name
    def enter_pass_ctx(self):
        print(self._name, "enter_pass_ctx")
    def exit_pass_ctx(self):
        print(self._name, "exit_pass_ctx")
    def should_run(self, mod, info):
        print(self._name, "should_run")
        return True
    def run_before_pass(self, mod, pass_info):
        print(self._name, "run_before_pass")
    def run_after_pass(self, mod, pass_info):
        print(self._name, "run_after_pass")
@pass_instrument
class PassFine(PassExampleBase):
    pass
@pass_instrument
class PassBadEnterCtx(PassExampleBase):
    def enter_pass_ctx(self):
        print(self._name, "bad enter_pass_ctx!!!")
        raise ValueError("{} bad enter_pass_ctx".format(self._name))
try:
    with tvm.transform.PassContext(instruments=[PassFine("PassFine_0"), PassBadEnterCtx("PassBadEnterCtx"), PassFine("PassFine_1")]):
        relay_mod = relay.transform.InferType()(relay_mod)
except ValueError as ex:
    print("Catching", str(ex).split("\n")[-1])
cur_pass_ctx = tvm.transform.PassContext.current()
cur_pass_ctx.override_instruments(None)
print("ok")
