# Pass instruments: timing, counting operators around passes, overriding, errors.
import tvm
import tvm.relay as relay
from tvm.relay.testing import resnet
from tvm.relay.build_module import bind_params_by_name
from tvm.ir.instrument import PassTimingInstrument, pass_instrument

batch_size = 1
num_of_image_class = 1000
image_shape = (3, 224, 224)
relay_mod, relay_params = resnet.get_workload(num_layers=18, batch_size=1, image_shape=image_shape)
f = relay_mod["main"]
mod = relay_mod


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
                    # Some CallNode may not have 'name' such as relay.Function
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
pass_seq = tvm.transform.Sequential(
    [
        relay.transform.FoldConstant(),
        relay.transform.ConvertLayout(desired_layouts),
        relay.transform.FoldConstant(),
    ]
)
relay_mod["main"] = bind_params_by_name(relay_mod["main"], relay_params)
timing_inst = PassTimingInstrument()
with tvm.transform.PassContext(opt_level=3, instruments=[timing_inst, call_node_inst]):
    relay_mod = pass_seq(relay_mod)
    profiles = timing_inst.render()
print(profiles)
diff = call_node_inst.get_pass_to_op_diff()
assert any(name == "ConvertLayout" and d.get("layout_transform", 0) > 0 for _, name, d in diff), diff

cur_pass_ctx = tvm.transform.PassContext.current()
cur_pass_ctx.override_instruments([call_node_inst])
relay_mod = pass_seq(mod)
cur_pass_ctx.override_instruments([])


@pass_instrument
class PassExampleRaises:
    def run_before_pass(self, mod, info):
        raise ValueError("stop here")


try:
    with tvm.transform.PassContext(opt_level=3, instruments=[PassExampleRaises()]):
        relay.transform.InferType()(mod)
    raise SystemExit("should have raised")
except ValueError as error:
    assert "stop here" in str(error)
print("ok")
