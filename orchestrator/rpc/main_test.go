package rpc_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/exocomp/exocomp/orchestrator/rpc"
)

// clientEnv makes the test binary a client of the socket that it names: it
// dials, prints a line (`ready`, or the error), and waits for its end.
const clientEnv = "RPC_TEST_CLIENT"

func TestMain(m *testing.M) {
	if socket := os.Getenv(clientEnv); socket != "" {
		c, err := rpc.Dial(context.Background(), rpc.ClientOptions{Socket: socket})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ready", c.Role())
		select {}
	}
	goleak.VerifyTestMain(m)
}
