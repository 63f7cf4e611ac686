"""Running the stack without the cloud: an emulator, the build, the deployed stack.

    with Emulator() as emulator:
        stack = deploy(emulator)
        answer = stack.invoke("RecorderFunction", report)

The demo, `make up` and the tests in `tests/deployed` stand on this; nothing in it is part of what is deployed.
"""
