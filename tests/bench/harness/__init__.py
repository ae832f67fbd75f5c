"""The load harness: measures motel beside other agents. Started by tests/bench/run and tests/bench/report; see tests/bench/README.md."""
