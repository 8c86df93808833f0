module github.com/stilehost/stile/bench/peers/dbos

go 1.26.0

require (
	github.com/dbos-inc/dbos-transact-golang v0.8.0
	github.com/jackc/pgx/v5 v5.7.5
	github.com/stilehost/stile/bench/peers/protocol v0.0.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/gorilla/websocket v1.5.3 // indirect
	github.com/jackc/pgerrcode v0.0.0-20220416144525-469b46aa5efa // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.2 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	golang.org/x/crypto v0.39.0 // indirect
	golang.org/x/sync v0.15.0 // indirect
	golang.org/x/text v0.26.0 // indirect
)

replace github.com/stilehost/stile/bench/peers/protocol => ../protocol
