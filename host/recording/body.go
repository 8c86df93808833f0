package recording

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/jsonform"
)

// version is the version of a body's format.
const version = 1

// maxValues bounds the values in a header. Each takes up to 700 bytes when it is decoded.
const maxValues = 100_000

// header begins a body. Input, operations and output follow it unchanged.
type header struct {
	Version      int               `json:"version"`
	Component    string            `json:"component"`
	Tool         string            `json:"tool"`
	Extension    string            `json:"extension,omitempty"`
	Bindings     map[string]string `json:"bindings,omitempty"`
	WASI         abi.WASI          `json:"wasi,omitzero"`
	Limits       host.Limits       `json:"limits"`
	Started      time.Time         `json:"started"`
	Duration     int64             `json:"duration"`
	Recorded     int               `json:"recorded"`
	Cut          string            `json:"cut,omitempty"`
	Redacted     bool              `json:"redacted,omitempty"`
	OutputDigest string            `json:"outputDigest,omitempty"`
	Outcome      host.Outcome      `json:"outcome"`
	CPU          int64             `json:"cpu"`
	Operations   int               `json:"operations"`
	Denials      []abi.Denial      `json:"denials,omitempty"`
	Dropped      int               `json:"denialsDropped,omitempty"`
	HasInput     bool              `json:"hasInput"`
	Code         string            `json:"code,omitempty"`
	SourceMap    []byte            `json:"sourceMap,omitempty"`
}

func encode(r *host.Recording) ([]byte, error) {
	head, err := json.Marshal(header{
		Version: version, Component: r.Component, Tool: r.Tool, Extension: r.Extension, Bindings: r.Bindings, WASI: r.WASI, Limits: r.Limits, Started: r.Started, Duration: int64(r.Duration),
		Recorded: r.Recorded, Cut: r.Cut, Redacted: r.Redacted, OutputDigest: r.OutputDigest, Outcome: r.Outcome,
		CPU: int64(r.Usage.CPU), Operations: r.Usage.Operations, Denials: r.Usage.Denials, Dropped: r.Usage.DenialsDropped,
		HasInput: r.Input != nil, Code: r.Code, SourceMap: r.SourceMap,
	})
	if err != nil {
		return nil, fmt.Errorf("encode a recording: %w", err)
	}
	body := make([]byte, 0, len(head)+len(r.Input)+len(r.Operations)+len(r.Output)+4*binary.MaxVarintLen64)
	for _, part := range [][]byte{head, r.Input, r.Operations, r.Output} {
		body = append(binary.AppendUvarint(body, uint64(len(part))), part...)
	}
	return body, nil
}

// decode reads bytes of unknown origin.
func decode(body []byte) (*host.Recording, error) {
	var parts [4][]byte
	for i := range parts {
		n, size := binary.Uvarint(body)
		if size <= 0 || n > uint64(len(body)-size) {
			return nil, errors.New("it ends early")
		}
		parts[i], body = body[size:][:n:n], body[size:][n:]
	}
	if n := jsonform.Values(parts[0]); n > maxValues {
		return nil, fmt.Errorf("its header has more than %d values", maxValues)
	}
	var h header
	if err := json.Unmarshal(parts[0], &h); err != nil {
		return nil, err
	}
	switch {
	case h.Version != version:
		return nil, fmt.Errorf("its format has version %d; this program reads version %d", h.Version, version)
	case len(body) > 0:
		return nil, errors.New("there is data after its end")
	}
	r := &host.Recording{
		Component: h.Component, Tool: h.Tool, Extension: h.Extension, Code: h.Code, SourceMap: h.SourceMap, Bindings: h.Bindings, WASI: h.WASI, Limits: h.Limits, Started: h.Started, Duration: time.Duration(h.Duration),
		Operations: parts[2], Recorded: h.Recorded, Cut: h.Cut, Redacted: h.Redacted, OutputDigest: h.OutputDigest, Outcome: h.Outcome,
		Usage: host.Usage{CPU: time.Duration(h.CPU), Operations: h.Operations, Denials: h.Denials, DenialsDropped: h.Dropped},
	}
	if h.HasInput {
		r.Input = parts[1]
	}
	if len(parts[3]) > 0 {
		r.Output = parts[3]
	}
	return r, nil
}
