// Command cosign imitates the program of that name, with its own Sigstore, for tests of programs that must not link one. It reads
// requests as JSON and writes a bundle or a trusted root for each, until its input ends.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/stilehost/stile/extension/pack/sigstore/sigstoretest"
)

func main() {
	if err := serve(json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, "cosign:", err)
		os.Exit(1)
	}
}

func serve(in *json.Decoder, out *json.Encoder) error {
	n, err := sigstoretest.New()
	if err != nil {
		return err
	}
	for {
		var asked struct {
			// Command is "trusted-root", "sign-blob" of a file, or "sign" of the manifest of an image.
			Command, Identity, Issuer string
			What                      []byte
		}
		if err := in.Decode(&asked); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var text json.RawMessage
		switch asked.Command {
		case "trusted-root":
			text, err = n.Root(sigstoretest.Parts{Log: true, Timestamps: true})
		case "sign-blob":
			b, signErr := n.SignBlob(asked.Identity, asked.Issuer, asked.What, time.Now().Add(time.Minute))
			if err = signErr; err == nil {
				text, err = protojson.Marshal(b)
			}
		case "sign":
			b, signErr := n.Attest(asked.Identity, asked.Issuer, "https://sigstore.dev/cosign/sign/v1", asked.What, 2)
			if err = signErr; err == nil {
				text, err = protojson.Marshal(b)
			}
		default:
			err = fmt.Errorf("there is no command %q", asked.Command)
		}
		if err != nil {
			return err
		}
		if err := out.Encode(text); err != nil {
			return err
		}
	}
}
