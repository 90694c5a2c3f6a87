package tofuapply_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/jobs"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/steptest"
	"github.com/exocomp/exocomp/orchestrator/internal/steps/tofuapply"
	"github.com/exocomp/exocomp/orchestrator/internal/tofu"
)

func TestStepConforms(t *testing.T) {
	steptest.Run(t, steptest.Suite{
		Kind: orchestrator.StepTofuApply, Phase: "apply",
		New: func(t *testing.T, s *steptest.Site) jobs.Handler { return newHandler(t, s) },
	})
}

// fakeTofu plans to create x.a. Its apply starts that, and where Dir/fail is
// there ends without having it in the state.
const fakeTofu = `case "$*" in
init*) ran init ;;
plan*) ran plan; for a; do case $a in -out=*) : >"${a#-out=}";; esac; done ;;
apply*) ran apply
	echo '{"type":"apply_start","hook":{"resource":{"addr":"x.a"},"action":"create"}}'
	hold
	[ -e $dir/fail ] && exit 1
	echo '{"type":"apply_complete","hook":{"resource":{"addr":"x.a"},"action":"create"}}'
	: >$dir/made ;;
"show "*.tfplan)
	echo '{"format_version":"1.2","terraform_version":"1.12.6","resource_changes":[{"address":"x.a","mode":"managed","type":"x","name":"a","change":{"actions":["create"],"before":null,"after":{}}}]}' ;;
show*)
	: >$dir/shown
	while [ -e $dir/slow ]; do sleep 0.02; done
	echo '{"format_version":"1.0","terraform_version":"1.12.6"}' ;;
"state pull"*) echo '{"version":4,"serial":9}' ;;
output*) echo '{"hosts":{"sensitive":false,"type":"dynamic","value":{"web1":{"ansible_host":"127.0.0.1","ansible_port":PORT}}}}' ;;
esac
`

func newHandler(t *testing.T, s *steptest.Site) *tofuapply.Handler {
	touch(t, s, "main.tf")
	install := tofu.Install{Path: s.Tool(t, "tofu", strings.ReplaceAll(fakeTofu, "PORT", strconv.Itoa(s.Port))), Version: "1.12.6"}
	return &tofuapply.Handler{
		Ledger:    s.Ledger,
		Locate:    func(context.Context) (tofu.Install, error) { return install, nil },
		Preflight: func(context.Context) error { return nil },
		InitDir:   filepath.Join(s.Dir, "init"),
		Artifacts: func(string) string { return filepath.Join(s.Dir, "edge.json") },
	}
}

func touch(t *testing.T, s *steptest.Site, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// applying returns a handler whose daemon has gone while its apply ran.
func applying(t *testing.T) (*steptest.Site, *tofuapply.Handler, *jobs.Attempt) {
	t.Helper()
	s := steptest.NewSite(t, orchestrator.StepTofuApply)
	h := newHandler(t, s)
	s.Hold(t)
	ctx, end := context.WithCancelCause(t.Context())
	returned := make(chan struct{})
	a := s.Attempt(t)
	go func() {
		defer close(returned)
		_, _ = h.Handle(ctx, a)
	}()
	s.AwaitHeld(t)
	end(jobs.ErrShutdown)
	<-returned
	return s, h, a
}

// What bars a beginning must not cost an apply that has begun its state, nor
// the knowledge of what it made.
func TestApplyThatHasBegunIsWaitedForAndCompared(t *testing.T) {
	missing := func(context.Context) error { return errors.New("ansible is missing") }
	noTofu := func(context.Context) (tofu.Install, error) { return tofu.Install{}, errors.New("tofu is missing") }
	for name, c := range map[string]struct {
		kill, fail bool
		bar        func(*steptest.Site, *tofuapply.Handler)
		succeeds   bool
		lost       bool
	}{
		"no ansible, it ends well":     {bar: func(_ *steptest.Site, h *tofuapply.Handler) { h.Preflight = missing }, succeeds: true},
		"no ansible, it fails":         {fail: true, bar: func(_ *steptest.Site, h *tofuapply.Handler) { h.Preflight = missing }, lost: true},
		"no module, it was lost":       {kill: true, bar: func(s *steptest.Site, _ *tofuapply.Handler) { _ = os.Remove(filepath.Join(s.Dir, "main.tf")) }, lost: true},
		"no tofu, it ends well":        {bar: func(_ *steptest.Site, h *tofuapply.Handler) { h.Locate = noTofu }},
		"no tofu, it fails":            {fail: true, bar: func(_ *steptest.Site, h *tofuapply.Handler) { h.Locate = noTofu }, lost: true},
		"no tofu, it was lost":         {kill: true, bar: func(_ *steptest.Site, h *tofuapply.Handler) { h.Locate = noTofu }, lost: true},
		"cancelled, and it was killed": {kill: true, bar: func(*steptest.Site, *tofuapply.Handler) {}, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, h, a := applying(t)
			c.bar(s, h)
			if c.fail {
				touch(t, s, "fail")
			}
			if c.kill {
				s.Kill(t, a, "apply")
			}
			s.Release(t)
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			if strings.HasPrefix(name, "cancelled") {
				end(jobs.ErrCancelled) // before it has looked at anything
			}
			out, err := h.Handle(ctx, s.Attempt(t))
			if err != nil || out.Succeeded() != c.succeeds {
				t.Errorf("outcome = %+v, %v, want success: %v", out.Failure, err, c.succeeds)
			}
			if lost := len(out.Lost) == 1 && out.Lost[0].Address == "x.a"; lost != c.lost {
				t.Errorf("lost = %+v, want x.a: %v", out.Lost, c.lost)
			}
			if runs := s.Runs(t); !slices.Equal(runs, []string{"init", "plan", "apply"}) {
				t.Errorf("tofu ran for %q, want each once", runs)
			}
		})
	}
}

func TestAnApplyWithoutItsRecordIsNotPlannedAgain(t *testing.T) {
	s, h, a := applying(t)
	s.Kill(t, a, "apply")
	s.Release(t)
	if err := os.RemoveAll(a.ControlDir); err != nil {
		t.Fatal(err)
	}
	again := s.Attempt(t)
	again.Job.Phase = "apply"
	out, err := h.Handle(t.Context(), again)
	if err != nil || out.Failure == nil || !strings.Contains(out.Failure.Message, "may have made what the state lacks") {
		t.Errorf("outcome = %+v, %v, want a failure", out.Failure, err)
	}
	if runs := s.Runs(t); !slices.Equal(runs, []string{"init", "plan", "apply"}) {
		t.Errorf("tofu ran for %q, want nothing twice", runs)
	}
}

func TestShutdownDoesNotWaitForTheComparison(t *testing.T) {
	s, h, _ := applying(t)
	touch(t, s, "fail")
	touch(t, s, "slow")
	s.Release(t)
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(s.Dir, "shown")); err == nil {
				end(jobs.ErrShutdown)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	if out, err := h.Handle(ctx, s.Attempt(t)); !errors.Is(err, jobs.ErrShutdown) {
		t.Errorf("outcome = %+v, %v, want the shutdown", out.Failure, err)
	}
	if err := os.Remove(filepath.Join(s.Dir, "slow")); err != nil {
		t.Fatal(err)
	}
	if out, err := h.Handle(t.Context(), s.Attempt(t)); err != nil || len(out.Lost) != 1 {
		t.Errorf("the next daemon: lost = %+v, %v, want x.a", out.Lost, err)
	}
}
