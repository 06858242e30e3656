# Files that a tutorial downloads are found in folders, or the error says where to put them.
import os
import pathlib

import tvm
import tvm.testing
from tvm.contrib import download as by_module
from tvm.contrib.download import download, download_testdata

tvm.testing.utils.install_request_hook(depth=3)
url = "https://example.org/models/cat.png?raw=true"
try:
    download_testdata(url, "cat.png", module="data")
except tvm.TVMError as error:
    assert "save it as cat.png" in str(error) and url in str(error) and "RELAYLAB_DATA" in str(error)
else:
    raise AssertionError("nothing is there")
pathlib.Path("cat.png").write_bytes(b"a cat")
assert pathlib.Path(download_testdata(url, "cat.png", module="data")).read_bytes() == b"a cat"
download(url, "copies/kitten.png")
assert pathlib.Path("copies/kitten.png").read_bytes() == b"a cat"
pathlib.Path("elsewhere/data").mkdir(parents=True)
pathlib.Path("elsewhere/data/dog.png").write_bytes(b"a dog")
os.environ["RELAYLAB_DATA"] = "elsewhere"
assert by_module.download_testdata("https://example.org/dog.png", "dog.png", module="data").endswith("dog.png")
print("ok")
