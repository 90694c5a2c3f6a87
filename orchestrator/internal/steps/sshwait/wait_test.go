package sshwait

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// network is a network in a synctest bubble: hosts by name, no real sockets.
type network map[string]func(ctx context.Context) (net.Conn, error)

func (n network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return n[host](ctx)
}

func refused(context.Context) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

// blackHole drops every packet.
func blackHole(ctx context.Context) (net.Conn, error) {
	<-ctx.Done()
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
}

// talks accepts after a round trip and runs serve on the other end.
func talks(rtt time.Duration, serve func(net.Conn)) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		select {
		case <-time.After(rtt):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		here, there := net.Pipe()
		go func() {
			defer func() { _ = there.Close() }()
			serve(there)
		}()
		return here, nil
	}
}

func sshd(c net.Conn) { _, _ = c.Write([]byte("SSH-2.0-test\r\n")) }

// silent accepts and waits until the peer has gone.
func silent(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }

// from returns before until the time has passed, then after.
func from(at time.Duration, before, after func(context.Context) (net.Conn, error)) func(context.Context) (net.Conn, error) {
	start := time.Now()
	return func(ctx context.Context) (net.Conn, error) {
		if time.Since(start) >= at {
			return after(ctx)
		}
		return before(ctx)
	}
}

func targetsOf(names ...string) (targets []Target) {
	for _, n := range names {
		targets = append(targets, Target{Name: n, Host: n, Port: 22})
	}
	return targets
}

func TestWaitVerdicts(t *testing.T) {
	const bound = 40 * time.Second
	trickle := func(c net.Conn) {
		for _, err := c.Write([]byte("S")); err == nil; _, err = c.Write([]byte("x")) {
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			silent(c)
		}
	}
	says := func(text string) func(net.Conn) { return func(c net.Conn) { _, _ = c.Write([]byte(text)) } }
	slow := func(d time.Duration) func(net.Conn) {
		return func(c net.Conn) {
			_ = c.SetReadDeadline(time.Now().Add(d))
			silent(c)
			sshd(c)
		}
	}
	unknown := func(context.Context) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "web1.lan", IsNotFound: true}}
	}
	for name, tc := range map[string]struct {
		host   func() func(context.Context) (net.Conn, error)
		within time.Duration // 0: never ready
		want   string        // the last error
	}{
		"ready":                  {func() func(context.Context) (net.Conn, error) { return talks(0, sshd) }, time.Millisecond, ""},
		"text before the banner": {func() func(context.Context) (net.Conn, error) { return talks(0, says("hi\r\nSSH-2.0-x\r\n")) }, time.Millisecond, ""},
		"a second away":          {func() func(context.Context) (net.Conn, error) { return talks(time.Second, sshd) }, 1100 * time.Millisecond, ""},
		"slow to greet":          {func() func(context.Context) (net.Conn, error) { return talks(0, slow(9*time.Second)) }, 10 * time.Second, ""},
		"late, refused before":   {func() func(context.Context) (net.Conn, error) { return from(5*time.Second, refused, talks(0, sshd)) }, 5500 * time.Millisecond, ""},
		"late, dropped before":   {func() func(context.Context) (net.Conn, error) { return from(5*time.Second, blackHole, talks(0, sshd)) }, 5500 * time.Millisecond, ""},
		"late behind a proxy": {func() func(context.Context) (net.Conn, error) {
			return from(5*time.Second, talks(0, says("")), talks(0, sshd))
		}, 5500 * time.Millisecond, ""},
		"late, name appears": {func() func(context.Context) (net.Conn, error) { return from(5*time.Second, unknown, talks(0, sshd)) }, 6500 * time.Millisecond, ""},
		"late, silent before": {func() func(context.Context) (net.Conn, error) {
			return from(5*time.Second, talks(0, silent), talks(0, sshd))
		}, 8500 * time.Millisecond, ""},
		"refused":      {func() func(context.Context) (net.Conn, error) { return refused }, 0, "connection refused"},
		"dropped":      {func() func(context.Context) (net.Conn, error) { return blackHole }, 0, "timed out connecting"},
		"unknown name": {func() func(context.Context) (net.Conn, error) { return unknown }, 0, "no such host name: web1.lan"},
		"silent":       {func() func(context.Context) (net.Conn, error) { return talks(0, silent) }, 0, "banner: connected, but nothing came"},
		"refused, then silent": {func() func(context.Context) (net.Conn, error) {
			return from(bound-time.Second, refused, talks(0, silent))
		}, 0, "banner: connected, but nothing came"},
		"trickles":           {func() func(context.Context) (net.Conn, error) { return talks(0, trickle) }, 0, "banner: connected, but no whole banner came"},
		"accepts and closes": {func() func(context.Context) (net.Conn, error) { return talks(0, says("")) }, 0, "banner: the peer closed the connection at once"},
		"a banner of 300 bytes": {func() func(context.Context) (net.Conn, error) {
			return talks(0, says("SSH-2.0-"+string(make([]byte, 300))+"\r\n"))
		}, 0, "banner: a line is longer than 255 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				r := Wait(t.Context(), targetsOf("web1"), Options{
					Deadline: start.Add(bound),
					Dial:     network{"web1": tc.host()}.dial,
				})[0]
				took := time.Since(start)
				if tc.within > 0 {
					if !r.Ready || r.Err != nil || took > tc.within || r.Took != took {
						t.Errorf("result = %+v after %s, want ready within %s", r, took, tc.within)
					}
					return
				}
				if r.Ready || r.Err == nil || r.Err.Error() != tc.want {
					t.Errorf("result = %+v, want the error %q", r, tc.want)
				}
				if took != bound {
					t.Errorf("took %s, want exactly %s", took, bound)
				}
			})
		})
	}
}

func TestHostsThatComeUpAreNoticedSoon(t *testing.T) {
	for name, before := range map[string]func(context.Context) (net.Conn, error){"refused": refused, "dropped": blackHole} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const hosts = 500
				n, up := network{}, make([]time.Duration, hosts)
				var names []string
				for i := range hosts {
					up[i] = time.Duration(i) * 97 * time.Millisecond
					h := fmt.Sprintf("h%d", i)
					names, n[h] = append(names, h), from(up[i], before, talks(time.Millisecond, sshd))
				}
				var lags []time.Duration
				for i, r := range Wait(t.Context(), targetsOf(names...), Options{Deadline: time.Now().Add(time.Minute), Dial: n.dial}) {
					if !r.Ready {
						t.Fatalf("host %d: %v", i, r.Err)
					}
					lags = append(lags, r.Took-up[i])
				}
				slices.Sort(lags)
				if p99 := lags[len(lags)*99/100]; p99 > 500*time.Millisecond {
					t.Errorf("p99 lag = %s, want at most 500ms", p99)
				}
			})
		})
	}
}

func TestDeadHostsDoNotStarveOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network{}
		var names []string
		var open, most atomic.Int64
		counted := func(dial func(context.Context) (net.Conn, error)) func(context.Context) (net.Conn, error) {
			return func(ctx context.Context) (net.Conn, error) {
				for now := open.Add(1); ; {
					if m := most.Load(); now <= m || most.CompareAndSwap(m, now) {
						break
					}
				}
				defer open.Add(-1)
				return dial(ctx)
			}
		}
		for i := range 3000 {
			h := fmt.Sprintf("dead%d", i)
			names, n[h] = append(names, h), counted(blackHole)
		}
		for i := range 20 {
			h := fmt.Sprintf("far%d", i)
			names, n[h] = append(names, h), counted(talks(700*time.Millisecond, sshd))
		}
		start := time.Now()
		results := Wait(t.Context(), targetsOf(names...), Options{Deadline: start.Add(time.Minute), Concurrency: 256, Dial: n.dial})
		if took := time.Since(start); took != time.Minute {
			t.Errorf("took %s, want exactly a minute", took)
		}
		for _, r := range results[3000:] {
			if !r.Ready || r.Took > 30*time.Second {
				t.Errorf("%s: %+v, want ready within 30s", r.Name, r)
			}
		}
		for _, r := range results[:3000] {
			if r.Ready || r.Err.Error() != "timed out connecting" {
				t.Fatalf("%s: %+v", r.Name, r)
			}
		}
		if most.Load() > 256 {
			t.Errorf("%d connections at once, want at most 256", most.Load())
		}
	})
}

func TestWaitEndsWithItsContextAndReportsAsItGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network{"up": talks(0, sshd), "late": from(time.Second, refused, talks(0, sshd)), "down": refused}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errors.New("cancelled by ann"))
		defer cancel()
		var told []string
		results := Wait(ctx, targetsOf("down", "late", "up"), Options{
			Dial:     n.dial,
			OnResult: func(r HostResult) { told = append(told, r.Name) },
		})
		if want := []string{"up", "late", "down"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		if results[0].Name != "down" || results[0].Ready || !results[1].Ready || !results[2].Ready {
			t.Errorf("results = %+v", results)
		}
		if results[0].Address != "down:22" || results[0].Took != 5*time.Second {
			t.Errorf("down: %+v", results[0])
		}
	})
}

func TestWaitGivesAHostFewConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conns atomic.Int64
		n := network{"quiet": talks(0, func(c net.Conn) { conns.Add(1); silent(c) })}
		Wait(t.Context(), targetsOf("quiet"), Options{Deadline: time.Now().Add(30 * time.Second), Dial: n.dial})
		if got := conns.Load(); got > 11 {
			t.Errorf("%d connections in 30s to a peer that may be a slow sshd, want at most 11", got)
		}
	})
}

// The rest is on real sockets.

func listen(t *testing.T, serve func(net.Conn)) Target {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer func() { _ = c.Close() }()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		conns.Wait()
	})
	return Target{Name: "h", Host: "127.0.0.1", Port: ln.Addr().(*net.TCPAddr).Port}
}

func TestWaitOnRealSockets(t *testing.T) {
	reset := func(c net.Conn) {
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		silent(c)
		_ = c.(*net.TCPConn).SetLinger(0)
	}
	closed, _ := bound(t) // and nobody listens
	for name, tc := range map[string]struct {
		target Target
		want   string
	}{
		"ready":   {listen(t, sshd), ""},
		"silent":  {listen(t, silent), "banner: connected, but nothing came"},
		"resets":  {listen(t, reset), "banner: the peer reset the connection"},
		"closes":  {listen(t, func(net.Conn) {}), "banner: the peer closed the connection at once"},
		"refused": {closed, "connection refused"},
		"dropped": {fullBacklog(t), "timed out connecting"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			const limit = 2500 * time.Millisecond
			r := Wait(t.Context(), []Target{tc.target}, Options{Deadline: start.Add(limit)})[0]
			if over := time.Since(start) - limit; over > time.Second {
				t.Errorf("overran the deadline by %s", over)
			}
			got := ""
			if r.Err != nil {
				got = r.Err.Error()
			}
			if got != tc.want || r.Ready != (tc.want == "") {
				t.Errorf("result = %+v, want the error %q", r, tc.want)
			}
		})
	}
}

// bound returns a target whose port is taken by a socket that does not listen.
func bound(t *testing.T) (target Target, fd int) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return Target{Name: "h", Host: "127.0.0.1", Port: name.(*syscall.SockaddrInet4).Port}, fd
}

// fullBacklog returns a target whose kernel drops every SYN.
func fullBacklog(t *testing.T) Target {
	t.Helper()
	target, fd := bound(t)
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	for { // until the queue is full
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", target.Port), 100*time.Millisecond)
		if err != nil {
			return target
		}
		t.Cleanup(func() { _ = c.Close() })
	}
}

func TestAHundredDeadHostsDoNotOverrunTheDeadline(t *testing.T) {
	targets := slices.Repeat([]Target{fullBacklog(t)}, 100)
	start := time.Now()
	results := Wait(t.Context(), targets, Options{Deadline: start.Add(time.Second)})
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("took %s, want at most 1s and 1s over", took)
	}
	for _, r := range results {
		if r.Ready || r.Err == nil {
			t.Errorf("result = %+v", r)
		}
	}
}

func TestAThousandServersCostASecondAtMost(t *testing.T) {
	targets := make([]Target, 1000)
	for i := range targets {
		targets[i] = listen(t, sshd)
	}
	start, spent := time.Now(), cpuTime(t)
	results := Wait(t.Context(), targets, Options{Deadline: start.Add(30 * time.Second)})
	took := time.Since(start)
	spent = cpuTime(t) - spent
	for _, r := range results {
		if !r.Ready {
			t.Fatalf("%s: %v", r.Address, r.Err)
		}
	}
	// What a busy machine does beside it is not measured: with the servers, which
	// are in this process too, it must fit into a second of one core.
	t.Logf("1,000 servers took %s and %s of processor time", took, spent)
	if spent > time.Second && !raceEnabled {
		t.Errorf("1,000 servers took %s of processor time, want at most 1s", spent)
	}
}

func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestALateListenerIsNoticed(t *testing.T) {
	target, fd := bound(t)
	opened, tried := make(chan time.Time, 1), make(chan struct{})
	served := make(chan struct{})
	go func() {
		defer close(served)
		<-tried // three times, so that the delay has grown
		opened <- time.Now()
		if err := syscall.Listen(fd, 8); err != nil {
			t.Error(err)
			return
		}
		if c, _, err := syscall.Accept(fd); err == nil {
			_, _ = syscall.Write(c, []byte("SSH-2.0-test\r\n"))
			_ = syscall.Close(c)
		}
	}()
	var tries atomic.Int64
	r := Wait(t.Context(), []Target{target}, Options{
		Deadline: time.Now().Add(20 * time.Second),
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if tries.Add(1) == 3 {
				close(tried)
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	})[0]
	ready := time.Now()
	if !r.Ready {
		t.Fatal(r.Err)
	}
	<-served
	// The half second that we promise is held by a test with a clock of its own;
	// this one allows for a busy machine.
	if lag := ready.Sub(<-opened); lag > 2*time.Second {
		t.Errorf("noticed after %s", lag)
	}
}
