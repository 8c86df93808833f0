package main

import (
	"fmt"
	"strings"

	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/toolcontent"
)

// outputFlag says where the result of a tool goes.
type outputFlag struct {
	Output string `short:"o" placeholder:"FILE" help:"Write the result to a file instead of stdout: a picture, sound or file as its bytes, and anything else as JSON."`
}

// result prints the result of a tool. A terminal is told of pictures, sounds and files; anything else gets JSON.
func (f outputFlag) result(s *streams, output []byte) error {
	parts, ok := toolcontent.Parse(output)
	if f.Output != "" {
		data := append(escape(output), '\n')
		if ok {
			var bytes [][]byte
			for _, p := range parts {
				if p.Type != "text" {
					bytes = append(bytes, p.Data)
				}
			}
			switch len(bytes) {
			case 0:
			case 1:
				data = bytes[0]
			default:
				return usagef("the result has %d pictures, sounds and files, and --output takes one: without it, the result is printed as JSON", len(bytes))
			}
		}
		if err := writeFile(f.Output, data); err != nil {
			return err
		}
		s.say("stile: wrote %s (%s)", line(f.Output, 200), about(int64(len(data))))
		return nil
	}
	if _, person := terminal(s.out); !ok || !person {
		_, err := fmt.Fprintf(s.out, "%s\n", escape(output))
		return err
	}
	_, err := fmt.Fprint(s.out, contentText(parts))
	return err
}

// contentText says on a terminal what a result has.
func contentText(parts []toolcontent.Part) string {
	var b strings.Builder
	for _, p := range parts {
		switch {
		case p.Type == "text":
			b.WriteString(printable.Text(p.Text) + "\n")
		case p.Name != "":
			fmt.Fprintf(&b, "[%s, %s, %s; --output FILE writes it]\n", line(p.Name, 128), p.MIMEType, about(int64(len(p.Data))))
		default:
			fmt.Fprintf(&b, "[%s, %s; --output FILE writes it]\n", p.MIMEType, about(int64(len(p.Data))))
		}
	}
	return b.String()
}
