// Package toolcontent reads results of tools that are pictures, sounds, files and texts rather than JSON: {"content": [...]}, with
// parts as MCP has them. The bytes are a tool's, so a part is what its bytes are, not what it says: another result is plain JSON.
package toolcontent

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"image"
	_ "image/gif"  // the size of pictures
	_ "image/jpeg" // the same
	_ "image/png"  // the same
	"io"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// Limits of a result.
const (
	// MaxParts is how many parts it has, and MaxBytes how large it is as JSON.
	MaxParts = 16
	MaxBytes = 8 << 20
	// MaxPixels is how large a picture is when somebody shows it: a picture of a few bytes could take gigabytes.
	MaxPixels = 64 << 20
	maxFrames = 1 << 14 // pixels of a side
	maxName   = 128     // bytes
	maxType   = 100
)

// Part is one part. Its Type is "text", "image", "audio" or "file".
type Part struct {
	Type string `json:"type"`
	// Text is of a text.
	Text string `json:"text"`
	// Data are the bytes of the others, and MIMEType says what they are.
	Data     []byte `json:"data"`
	MIMEType string `json:"mimeType"`
	// Name is of a file: a name without folders.
	Name string `json:"name"`
}

// Parse returns the parts of a result that has nothing but parts. Of any other result, ok is false.
func Parse(output []byte) (parts []Part, ok bool) {
	if len(output) > MaxBytes || !bytes.HasPrefix(bytes.TrimLeft(output, " \t\r\n"), []byte(`{"content"`)) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(output))
	d.DisallowUnknownFields()
	// Part by part, because a list of many small values would take a hundred times its size.
	for _, want := range []json.Token{json.Delim('{'), "content", json.Delim('[')} {
		if t, err := d.Token(); err != nil || t != want {
			return nil, false
		}
	}
	for d.More() {
		var p Part
		if len(parts) == MaxParts || d.Decode(&p) != nil || !p.holds() {
			return nil, false
		}
		parts = append(parts, p)
	}
	for _, want := range []json.Token{json.Delim(']'), json.Delim('}')} {
		if t, err := d.Token(); err != nil || t != want {
			return nil, false
		}
	}
	if _, err := d.Token(); len(parts) == 0 || !errors.Is(err, io.EOF) {
		return nil, false
	}
	return parts, true
}

var mediaType = lazyregexp.New(`^[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*$`)

// holds reports whether a part is what it says.
func (p Part) holds() bool {
	switch p.Type {
	case "text":
		return p.Data == nil && p.MIMEType == "" && p.Name == "" && utf8.ValidString(p.Text)
	case "image":
		return p.Text == "" && p.Name == "" && isPicture(p.MIMEType, p.Data)
	case "audio":
		return p.Text == "" && p.Name == "" && isSound(p.MIMEType, p.Data)
	case "file":
		return p.Text == "" && p.Data != nil && len(p.MIMEType) <= maxType && mediaType.MatchString(p.MIMEType) && isName(p.Name)
	default:
		return false
	}
}

// isName reports whether a name is one that a client can offer for a download: of no folder, not hidden, and as it looks.
func isName(name string) bool {
	return name != "" && len(name) <= maxName && utf8.ValidString(name) && !strings.HasPrefix(name, ".") && !strings.ContainsAny(name, `/\:<>"|?*`) &&
		strings.TrimSpace(name) == name && printable.NextUnseen(name) < 0 && !strings.ContainsAny(name, "\n\r\t")
}

// isPicture reports whether bytes are a picture of a type that clients show, and of a size that they can.
func isPicture(mime string, data []byte) bool {
	width, height := 0, 0
	switch mime {
	case "image/png", "image/jpeg", "image/gif":
		c, format, err := image.DecodeConfig(bytes.NewReader(data))
		if err != nil || "image/"+format != mime {
			return false
		}
		width, height = c.Width, c.Height
	case "image/webp":
		width, height = webp(data)
	}
	return width > 0 && height > 0 && width <= maxFrames && height <= maxFrames && width*height <= MaxPixels
}

// webp returns the size of a picture, 0 if it is none.
func webp(data []byte) (width, height int) {
	if len(data) < 30 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WEBP" {
		return 0, 0
	}
	le := binary.LittleEndian
	switch string(data[12:16]) {
	case "VP8X":
		return 1 + int(le.Uint32(data[24:])&0xffffff), 1 + int(le.Uint32(data[26:])>>8)
	case "VP8L":
		bits := le.Uint32(data[21:])
		return 1 + int(bits&0x3fff), 1 + int(bits>>14&0x3fff)
	case "VP8 ":
		return int(le.Uint16(data[26:]) & 0x3fff), int(le.Uint16(data[28:]) & 0x3fff)
	default:
		return 0, 0
	}
}

// isSound reports whether bytes begin like a sound of the type.
func isSound(mime string, data []byte) bool {
	starts := func(text string) bool { return strings.HasPrefix(string(data[:min(len(data), 16)]), text) }
	switch mime {
	case "audio/wav":
		return starts("RIFF") && len(data) > 12 && string(data[8:12]) == "WAVE"
	case "audio/mpeg":
		return starts("ID3") || len(data) > 4 && data[0] == 0xff && data[1]&0xe0 == 0xe0
	case "audio/ogg":
		return starts("OggS")
	case "audio/flac":
		return starts("fLaC")
	case "audio/webm":
		return starts("\x1a\x45\xdf\xa3")
	case "audio/mp4":
		return len(data) > 12 && string(data[4:8]) == "ftyp"
	default:
		return false
	}
}
