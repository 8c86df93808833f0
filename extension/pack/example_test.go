package pack_test

import (
	"crypto/ed25519"
	"fmt"
	"log"
	"time"

	"github.com/stilehost/stile/extension/pack"
)

func Example() {
	p := &pack.Pack{
		Manifest: []byte(`{"name": "a", "version": "1.0.0", "description": "d", "tools": ["t"]}`), Entry: "tool.ts",
		Files: map[string][]byte{"tool.ts": []byte("export default 1;")}, Component: []byte("\x00asm"),
	}
	digest, err := p.Digest()
	if err != nil {
		log.Fatal(err)
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		log.Fatal(err)
	}
	signature, err := pack.Sign(private, digest, "ada@example.org", time.Now())
	if err != nil {
		log.Fatal(err)
	}
	signer, err := pack.Verify(p, []pack.Signature{signature}, []ed25519.PublicKey{public})
	fmt.Println(signer.Who, err)
	// Output: ada@example.org <nil>
}
