//go:build wasip1

// A guest that does what goes wrong easily.
package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	mathrand "math/rand"
	randv2 "math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	stile "github.com/stilehost/stile/guest-sdk/go"
)

type none struct{}

// names is a map that the initialization makes. Its order is random.
var names = map[string]bool{}

// generator has a seed of the initialization.
var generator = randv2.New(randv2.NewChaCha8(seed()))

func seed() (seed [32]byte) {
	for k := range seed {
		seed[k] = byte(randv2.Uint32())
	}
	return seed
}

func init() {
	for k := range 26 {
		names[string(rune('a'+k))] = true
	}
}

func init() {
	stile.Tool("panics", "", func(*stile.Env, none) (any, error) { panic("the panic's text") })
	stile.Tool("exits", "", func(*stile.Env, none) (any, error) {
		fmt.Fprintln(os.Stderr, "last words")
		os.Exit(3)
		return nil, nil
	})
	stile.Tool("prints", "", func(*stile.Env, none) (any, error) {
		fmt.Println("to stdout")
		fmt.Fprintln(os.Stderr, "to stderr")
		return nil, nil
	})
	stile.Tool("surroundings", "", func(*stile.Env, none) (string, error) {
		return fmt.Sprint(os.Args, "; ", os.Environ()), nil
	})
	stile.Tool("random", "", func(*stile.Env, none) (string, error) {
		b := make([]byte, 17)
		_, err := rand.Read(b)
		return hex.EncodeToString(b), err
	})
	// Each way to random numbers: one line of each.
	stile.Tool("draws", "", func(*stile.Env, none) (any, error) {
		b := make([]byte, 17)
		_, err := rand.Read(b)
		order := make([]string, 0, len(names))
		for name := range names {
			order = append(order, name)
		}
		elsewhere := make(chan uint64)
		go func() { elsewhere <- randv2.Uint64() }()
		return map[string]any{
			"crypto/rand": hex.EncodeToString(b), "math/rand": mathrand.Int63(), "math/rand/v2": randv2.Uint64(), "math/rand.Rand": generator.Uint64(),
			"maphash": maphash.String(maphash.MakeSeed(), "x"), "map": strings.Join(order, ""), "goroutine": <-elsewhere,
		}, err
	})
	stile.Tool("sleeps", "", func(_ *stile.Env, in struct {
		Milliseconds int `json:"milliseconds"`
	}) (bool, error) {
		want := time.Duration(in.Milliseconds) * time.Millisecond
		start := time.Now()
		time.Sleep(want)
		return time.Since(start) >= want, nil
	})
	// Goroutines that call the host all the time, while the collector runs all the time.
	stile.Tool("goroutines", "", func(env *stile.Env, in struct {
		Count int `json:"count"`
	}) (int64, error) {
		bucket, err := env.KV("data")
		if err != nil {
			return 0, err
		}
		var wait sync.WaitGroup
		failures := make([]error, in.Count)
		for k := range in.Count {
			wait.Go(func() {
				text := strings.Repeat(fmt.Sprintf("%d.", k), 2000)
				key := fmt.Sprint(k)
				if failures[k] = bucket.Set(key, text); failures[k] != nil {
					return
				}
				runtime.GC()
				got, err := bucket.Get(key)
				if err != nil || got == nil || *got != text {
					failures[k] = fmt.Errorf("%s: wrong value, %v", key, err)
					return
				}
				_, failures[k] = bucket.Increment("sum", int64(k))
			})
		}
		wait.Wait()
		sum, err := bucket.Increment("sum", 0)
		return sum, errors.Join(append(failures, err)...)
	})
	stile.Tool("values", "", func(env *stile.Env, in struct {
		Text string `json:"text"`
	}) (any, error) {
		store, err := env.Blob("blobs")
		if err != nil {
			return nil, err
		}
		writer, err := store.Create("text/plain")
		if err != nil {
			return nil, err
		}
		if err := writer.AppendText(in.Text); err != nil {
			return nil, err
		}
		if err := writer.Append([]byte{'!', '\n'}); err != nil {
			return nil, err
		}
		blob, err := store.Finish(writer)
		if err != nil {
			return nil, err
		}
		defer blob.Drop()
		text, err := blob.Text(1 << 20)
		if err != nil {
			return nil, err
		}
		bytes, err := blob.Bytes(0, 2)
		return map[string]any{"type": blob.MediaType(), "size": blob.Size(), "text": text, "bytes": bytes, "names": len(env.Names())}, err
	})
	// The handle is gone once it was passed on.
	stile.Tool("passes", "", func(env *stile.Env, none struct{}) (any, error) {
		bucket, err := env.KV("data")
		if err != nil {
			return nil, err
		}
		inner, err := env.Subset(nil)
		if err != nil {
			return nil, err
		}
		if err := inner.PutKV("mine", bucket); err != nil {
			return nil, err
		}
		again, err := inner.KV("mine")
		if err != nil {
			return nil, err
		}
		return again.Get("x")
	})
	stile.Tool("invalid", "", func(env *stile.Env, none struct{}) (string, error) {
		bucket, err := env.KV("data")
		if err != nil {
			return "", err
		}
		if err := bucket.Set("text", "x"); err != nil {
			return "", err
		}
		_, err = bucket.Increment("text", 1)
		var invalid stile.ErrorInvalid
		return fmt.Sprint(errors.As(err, &invalid)), nil
	})
}

func main() {}
