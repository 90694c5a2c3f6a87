package rpc_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc"
	"github.com/exocomp/exocomp/orchestrator/rpc/rpctest"
)

// digest is a well-formed one.
var digest = "sha256:" + strings.Repeat("a", 64)

// edge adds the workspace that tests submit to and returns a spec for it.
func edge(t *testing.T, svc rpc.Service) orchestrator.RunSpec {
	t.Helper()
	_, err := svc.AddWorkspace(t.Context(), orchestrator.Workspace{
		Name: "edge", Dir: "/srv/edge", Approval: orchestrator.ApprovalDestructive,
	})
	if err != nil {
		t.Fatal(err)
	}
	return orchestrator.RunSpec{
		Playbook:        orchestrator.PlaybookRef{Path: "/home/me/site.yml", Entry: "site.yml", Digest: digest},
		OnboardPlaybook: &orchestrator.PlaybookRef{Path: "/home/me/on.yml", Entry: "on.yml", Digest: digest},
		SSHWait:         time.Minute,
	}
}

// rawConn connects without the client's own precautions. token may be empty.
func rawConn(t *testing.T, socket, token string) (*grpc.ClientConn, context.Context) {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx := t.Context()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	return conn, ctx
}

func readToken(t *testing.T, d *rpctest.Daemon, role rpc.Role) string {
	t.Helper()
	data, err := os.ReadFile(d.TokenFile(role))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

func TestManyClientsAtOnce(t *testing.T) {
	svc := rpctest.NewService()
	d := rpctest.Serve(t, svc)
	spec := edge(t, svc)
	const clients, calls = 12, 8
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			c, err := rpc.Dial(t.Context(), rpc.ClientOptions{Socket: d.Socket, Version: rpctest.Version})
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = c.Close() }()
			for j := range calls {
				r, err := c.SubmitRun(t.Context(), fmt.Sprintf("%d/%d", i, j), orchestrator.RunProvision, "edge", spec)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := c.GetRun(t.Context(), string(r.ID)); err != nil || got.ID != r.ID {
					t.Errorf("get %s = %s, %v", r.ID, got.ID, err)
				}
			}
		})
	}
	wg.Wait()
	runs, err := d.Dial().ListRuns(t.Context(), orchestrator.RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != clients*calls {
		t.Errorf("%d runs, want %d", len(runs), clients*calls)
	}
}

func TestClientsCloseLeavesTheDaemonRunning(t *testing.T) {
	d := rpctest.Serve(t, rpctest.NewService())
	other := d.Dial()
	for range 2 {
		c := d.Dial()
		for range 2 {
			if err := c.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	}
	if _, err := other.GetStatus(t.Context()); err != nil {
		t.Errorf("after others closed: %v", err)
	}
}

// A go-plugin client that knows nothing of us closes by asking the server to
// shut down, and has no token.
func TestForeignPluginClientsCloseAndKillLeaveTheDaemonRunning(t *testing.T) {
	d := rpctest.Serve(t, rpctest.NewService())
	ended := make(chan struct{})
	foreign := plugin.NewClient(&plugin.ClientConfig{
		Plugins:          plugin.PluginSet{},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Logger:           hclog.NewNullLogger(),
		Reattach: &plugin.ReattachConfig{
			Protocol: plugin.ProtocolGRPC,
			Addr:     &net.UnixAddr{Net: "unix", Name: d.Socket},
			ReattachFunc: func() (runner.AttachedRunner, error) {
				return foreignRunner{ended: ended}, nil
			},
		},
	})
	protocol, err := foreign.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := protocol.Ping(); err != nil {
		t.Errorf("ping without a token: %v", err)
	}
	foreign.Kill()
	if _, err := d.Dial().GetStatus(t.Context()); err != nil {
		t.Errorf("after the kill: %v", err)
	}
}

type foreignRunner struct{ ended chan struct{} }

func (r foreignRunner) Wait(context.Context) error { <-r.ended; return nil }
func (r foreignRunner) Kill(context.Context) error { close(r.ended); return nil }
func (foreignRunner) ID() string                   { return "foreign" }
func (foreignRunner) PluginToHost(n, a string) (string, string, error) {
	return n, a, nil
}
func (foreignRunner) HostToPlugin(n, a string) (string, string, error) {
	return n, a, nil
}

func TestKilledClientProcessLeavesTheDaemonRunning(t *testing.T) {
	d := rpctest.Serve(t, rpctest.NewService())
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{clientEnv + "=" + d.Socket}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "ready operator\n" {
		t.Errorf("the client said %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if _, err := d.Dial().GetStatus(t.Context()); err != nil {
		t.Errorf("after the kill: %v", err)
	}
}

// Of go-plugin's and gRPC's own services only the health check is offered.
func TestForeignServicesAreRefused(t *testing.T) {
	d := rpctest.Serve(t, rpctest.NewService())
	streams := []string{
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
		"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
		"/plugin.GRPCBroker/StartStream",
		"/plugin.GRPCStdio/StreamStdio",
		"/grpc.health.v1.Health/Watch",
	}
	for name, test := range map[string]struct {
		token string
		want  codes.Code
	}{
		"without a token": {"", codes.Unauthenticated},
		"operator":        {readToken(t, d, rpc.RoleOperator), codes.Unimplemented},
	} {
		conn, ctx := rawConn(t, d.Socket, test.token)
		for _, method := range streams {
			s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
			if err == nil {
				_ = s.CloseSend()
				err = s.RecvMsg(&emptypb.Empty{})
			}
			if got := status.Code(err); got != test.want {
				t.Errorf("%s: %s answers %v, want %s", name, method, err, test.want)
			}
		}
		if err := conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
			t.Errorf("%s: shutdown is not ignored: %v", name, err)
		}
		h, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: plugin.GRPCServiceName})
		if err != nil || h.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("%s: health = %v, %v", name, h, err)
		}
	}
}

func TestPeerReachesTheService(t *testing.T) {
	svc := rpctest.NewService()
	d := rpctest.Serve(t, svc)
	r, err := d.Dial().SubmitRun(t.Context(), "", orchestrator.RunProvision, "edge", edge(t, svc))
	if err != nil {
		t.Fatal(err)
	}
	want := orchestrator.Peer{UID: os.Getuid(), GID: os.Getgid(), PID: os.Getpid()}
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		want.Name = u.Username
	}
	if r.SubmittedBy != want {
		t.Errorf("submitted by %+v, want %+v", r.SubmittedBy, want)
	}
	if p := rpc.PeerFrom(t.Context()); p != (orchestrator.Peer{}) {
		t.Errorf("outside a call the peer is %+v", p)
	}
}

func TestReaderReadsAndIsDeniedTheRest(t *testing.T) {
	svc := rpctest.NewService()
	d := rpctest.Serve(t, svc)
	spec := edge(t, svc)
	c := d.DialAs(rpc.RoleReader)
	if c.Role() != rpc.RoleReader {
		t.Errorf("role = %q", c.Role())
	}
	if _, err := c.ListRuns(t.Context(), orchestrator.RunFilter{}); err != nil {
		t.Errorf("list runs: %v", err)
	}
	_, err := c.SubmitRun(t.Context(), "k", orchestrator.RunProvision, "edge", spec)
	want := "a reader's token may only look at runs, schedules, inventories and pins; use the operator's: --token-file FILE or EXOCOMP_TOKEN_FILE=FILE, operator.token beside the socket"
	if !errors.Is(err, orchestrator.ErrDenied) || err.Error() != want {
		t.Errorf("submit: %v, want %s", err, want)
	}
	err = c.WatchEvents(t.Context(), orchestrator.EventFilter{}, func(orchestrator.Event) error { return nil })
	if !errors.Is(err, orchestrator.ErrDenied) {
		t.Errorf("watch: %v, want denied", err)
	}
}

func TestTenMiBMessageBothWays(t *testing.T) {
	svc := rpctest.NewService()
	want := bytes.Repeat([]byte("x"), 10<<20)
	svc.Inventories["edge"] = rpc.InventoryView{Inventory: orchestrator.Inventory{Workspace: "edge", Content: want}}
	c := rpctest.Serve(t, svc).Dial()
	v, err := c.GetInventory(t.Context(), "tf:edge")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(v.Inventory.Content, want) {
		t.Errorf("%d bytes came back", len(v.Inventory.Content))
	}
	w, err := c.AddWorkspace(t.Context(), orchestrator.Workspace{
		Name: "edge", Dir: "/" + string(want), Approval: orchestrator.ApprovalNever,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Dir) != len(want)+1 {
		t.Errorf("%d bytes came back", len(w.Dir))
	}
}

func TestTooLargeMessageIsASentence(t *testing.T) {
	svc := rpctest.NewService()
	svc.FleetKey = strings.Repeat("x", rpc.MaxMessage+1)
	c := rpctest.Serve(t, svc).Dial()
	_, err := c.GetFleetKey(t.Context())
	if !errors.Is(err, orchestrator.ErrInvalid) || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Errorf("got %v", err)
	}
}

func TestServiceErrorsReachTheClientWhole(t *testing.T) {
	c := rpctest.Serve(t, rpctest.NewService()).Dial()
	_, err := c.GetWorkspace(t.Context(), "nope")
	if !errors.Is(err, orchestrator.ErrNotFound) || err.Error() != `no workspace "nope"` {
		t.Errorf("unknown workspace: %v", err)
	}
	_, err = c.GetJob(t.Context(), "job_x")
	if !errors.Is(err, orchestrator.ErrInvalid) {
		t.Errorf("malformed id: %v", err)
	}
	err = c.ReadLog(t.Context(), rpc.LogRequest{Job: "job_00000000000000000000000009"}, func(rpc.LogChunk) error { return nil })
	if !errors.Is(err, orchestrator.ErrNotFound) {
		t.Errorf("unknown job's log: %v", err)
	}
}

func TestSubmitsAreIdempotentByKey(t *testing.T) {
	svc := rpctest.NewService()
	c := rpctest.Serve(t, svc).Dial()
	spec := edge(t, svc)
	var ids []orchestrator.RunID
	for _, key := range []string{"a", "a", "", ""} {
		r, err := c.SubmitRun(t.Context(), key, orchestrator.RunProvision, "edge", spec)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	if ids[0] != ids[1] {
		t.Errorf("one key made %s and %s", ids[0], ids[1])
	}
	if ids[2] == ids[3] || ids[1] == ids[2] {
		t.Errorf("without a key every submit is one of its own: %v", ids)
	}
	spec.AcceptLost = true
	if _, err := c.SubmitRun(t.Context(), "a", orchestrator.RunProvision, "edge", spec); !errors.Is(err, orchestrator.ErrConflict) {
		t.Errorf("the key with other content: %v, want conflict", err)
	}
}

func TestServeEndsWhenItsListenerFails(t *testing.T) {
	broken := errors.New("no more sockets")
	s := rpc.NewServer(rpctest.NewService(), rpc.ServerOptions{})
	err := s.Serve(t.Context(), brokenListener{broken})
	if !errors.Is(err, broken) {
		t.Errorf("serve = %v, want %v", err, broken)
	}
}

type brokenListener struct{ err error }

func (l brokenListener) Accept() (net.Conn, error) { return nil, l.err }
func (brokenListener) Close() error                { return nil }
func (brokenListener) Addr() net.Addr              { return &net.UnixAddr{Net: "unix", Name: "broken"} }

// A command line may hold any bytes, the contract's texts are UTF-8.
func TestATextThatIsNotUTF8IsTheCallersMistake(t *testing.T) {
	c := rpctest.Serve(t, rpctest.NewService()).Dial()
	_, err := c.GetRun(t.Context(), "bad\xff")
	if orchestrator.CodeOf(err) != orchestrator.CodeInvalid || !strings.Contains(err.Error(), "not UTF-8; rename") {
		t.Errorf("error = %v, want a sentence", err)
	}
}
