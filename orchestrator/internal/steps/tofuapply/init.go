package tofuapply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"

	"github.com/exocomp/exocomp/orchestrator/internal/durable"
	"github.com/exocomp/exocomp/orchestrator/internal/tofu"
)

// initWhenNeeded runs `tofu init` unless the mark of the last one says that the
// module, its lock file, its backend and tofu itself are unchanged. A mark that
// says too little costs a failed plan, after which init runs all the same.
func (a *attempt) initWhenNeeded(ctx context.Context) error {
	mark, err := a.initMark()
	if err != nil {
		return err
	}
	if last, err := os.ReadFile(a.initMarkFile()); err == nil && string(last) == mark {
		return nil
	}
	return a.init(ctx)
}

func (a *attempt) init(ctx context.Context) error {
	res, err := a.exec(ctx, phaseInit, a.module.Init())
	if err != nil {
		return &phaseError{err}
	}
	if f := a.ended(res, "tofu init"); f != nil {
		return f.Err()
	}
	// computed anew: init itself writes the lock file
	mark, err := a.initMark()
	if err != nil {
		return err
	}
	if err := durable.Mkdir(a.InitDir); err != nil {
		return err
	}
	return durable.WriteFile(a.initMarkFile(), []byte(mark), durable.PrivateFile)
}

// ensureState makes sure, before a plan is made, that the apply can save its
// state while it works. Where that cannot be had, it saves it at its end.
func (a *attempt) ensureState(ctx context.Context) {
	if err := a.module.EnsureState(ctx); err != nil {
		a.Logf("the workspace has no state yet and an empty one could not be written: %v", err)
	}
}

func (a *attempt) initMarkFile() string { return filepath.Join(a.InitDir, a.Job.Workspace) }

// initMark digests what decides whether an init is needed.
func (a *attempt) initMark() (string, error) {
	ws := a.module.Workspace
	h := sha256.New()
	settings, err := json.Marshal([]any{a.module.Install, ws.Dir, ws.TofuWorkspace, ws.BackendConfig, ws.CLIConfig})
	if err != nil {
		return "", fmt.Errorf("digest workspace: %w", err)
	}
	h.Write(settings)
	files, err := tofu.ConfigurationFiles(ws.Dir)
	if err != nil {
		return "", err
	}
	files = append(files, filepath.Join(ws.Dir, ".terraform.lock.hcl"))
	for _, b := range ws.BackendConfig {
		if filepath.IsAbs(b) {
			files = append(files, b)
		}
	}
	sort.Strings(files)
	for _, f := range files {
		if err := digestFile(h, f); err != nil {
			return "", fmt.Errorf("digest workspace: %w", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func digestFile(w io.Writer, path string) error {
	f, err := durable.OpenRegular(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if _, err := io.WriteString(w, path+"\x00"); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
