package rpc

import (
	"bufio"
	"testing"
)

func TestSilenceNeverEnds(t *testing.T) {
	s := silence{done: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err := bufio.NewReader(s).Read(make([]byte, 1))
		t.Errorf("read returned %v: go-plugin would log it without a logger", err)
	}()
	close(s.done)
	<-ended
}

func TestContractsMustAgree(t *testing.T) {
	mine := Release{Contract: 1, Version: "v0.1.0"}
	if err := compareReleases(mine, Release{Contract: 1, Version: "v0.2.0"}); err != nil {
		t.Errorf("another release of the same contract: %v", err)
	}
	err := compareReleases(mine, Release{Contract: 2, Version: "v0.9.0"})
	want := "this client (exocomp v0.1.0) speaks version 1 of the contract, the daemon (exocomp v0.9.0) version 2; " +
		"install the same release on both ends, then restart the daemon"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
