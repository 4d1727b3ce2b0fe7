// SPDX-License-Identifier: Apache-2.0

package gpuguardextension

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/audit"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/guard"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/process"
)

// stateFile is where lies, beside the audit, what outlives a restart.
func (e *gpuGuard) stateFile() string { return e.cfg.Audit.File + ".state" }

// keep writes what outlives a restart.
func (e *gpuGuard) keep(k guard.Kept) error {
	content, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return audit.Replace(e.stateFile(), append(content, '\n'))
}

// restore takes up what was kept. Where that is damaged, what was spent is not known: then all is, for an hour.
func (e *gpuGuard) restore() error {
	if e.cfg.Audit.File == "" {
		return nil
	}
	content, err := os.ReadFile(e.stateFile())
	var kept guard.Kept
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("audit::file: what outlives a restart lies beside it: %w", err)
	default:
		if err = json.Unmarshal(content, &kept); err == nil {
			e.guard.Restore(kept)
			if p := kept.Pending; p != nil && !process.Ended(p.PID, p.Start) {
				e.log.Warn("a process that was asked to end before the restart is there still: if there is a reason still, it goes through all again after the cool-down",
					zap.Int("pid", p.PID), zap.String("executable", p.Executable))
			}
			break
		}
		aside := e.stateFile() + ".damaged"
		e.log.Error("what was done before the restart is not known: nobody is ended for an hour",
			zap.String("file", e.stateFile()), zap.String("kept_as", aside), zap.Error(err))
		if err := os.Rename(e.stateFile(), aside); err != nil {
			return fmt.Errorf("audit::file: %w", err)
		}
		e.guard.Exhaust()
	}
	if err := e.guard.Keep(); err != nil {
		return fmt.Errorf("audit::file: what outlives a restart cannot be written beside it: %w", err)
	}
	return nil
}
