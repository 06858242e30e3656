"""relay.testing: the networks, and helpers of tests."""

from relaylab.relay.testing import (
    darknet,
    dcgan,
    densenet,
    dqn,
    inception_v3,
    init,
    layers,
    lstm,
    mlp,
    mobilenet,
    nat,
    resnet,
    resnet_3d,
    squeezenet,
    synthetic,
    temp_op_attr,
    vgg,
    yolo_detection,
)
from relaylab.contrib.gradients import check_grad
from relaylab.text.prelude import Prelude
from relaylab.zoo.helpers import count_ops, rand, run_infer_type, run_opt_pass
from relaylab.zoo.init import create_workload
from relaylab.zoo.nat import count, make_nat_expr, make_nat_value
from relaylab.zoo.temp_op_attr import TempOpAttr
from relaylab.support.missing import missing as _missing

__getattr__ = _missing(__name__, globals())
