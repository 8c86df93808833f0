//go:build wasip1

// The tool of cold.ts, and one that holds its instance, in Go.
package main

import (
	"math"

	stile "github.com/stilehost/stile/guest-sdk/go"
)

type points struct {
	Lat1 float64 `json:"lat1"`
	Lon1 float64 `json:"lon1"`
	Lat2 float64 `json:"lat2"`
	Lon2 float64 `json:"lon2"`
}

type distance struct {
	Km float64 `json:"km"`
}

func init() {
	stile.Tool("haversine", "The distance between two points on Earth, in kilometres", func(env *stile.Env, in points) (distance, error) {
		clock, err := env.Clock("clock")
		if err != nil {
			return distance{}, err
		}
		store, err := env.KV("store")
		if err != nil {
			return distance{}, err
		}
		defer clock.Drop()
		defer store.Drop()
		const r, d2r = 6371, math.Pi / 180
		lat, lon := math.Sin((in.Lat2-in.Lat1)*d2r/2), math.Sin((in.Lon2-in.Lon1)*d2r/2)
		a := lat*lat + math.Cos(in.Lat1*d2r)*math.Cos(in.Lat2*d2r)*lon*lon
		return distance{2 * r * math.Asin(math.Sqrt(a))}, nil
	})
	stile.Tool("hold", "Waits", func(env *stile.Env, _ struct{}) (any, error) {
		clock, err := env.Clock("clock")
		if err != nil {
			return nil, err
		}
		clock.Subscribe(60_000_000_000).Block()
		return nil, nil
	})
}

func main() {}
