// Commits transactions of N records with franz-go and prints how long they took, as JSON.
//
//	transactions HOST:PORT TOPIC RECORDS SECONDS WARM_UP_SECONDS
//
// The client as it comes, but without compression, as the others in the bench. The topic's name is the transactional id too.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"sort"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const recordBytes = 84

type timing struct {
	Transactions int     `json:"transactions"`
	Seconds      float64 `json:"seconds"`
	P50          float64 `json:"p50_ms"`
	P99          float64 `json:"p99_ms"`
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 6 {
		log.Fatal("usage: transactions HOST:PORT TOPIC RECORDS SECONDS WARM_UP_SECONDS")
	}
	bootstrap, topic := os.Args[1], os.Args[2]
	records, seconds, warmUp := number(os.Args[3]), number(os.Args[4]), number(os.Args[5])
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.TransactionalID(topic),
		kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
	)
	check(err)
	ctx := context.Background()
	value := make([]byte, recordBytes)
	for i := range value {
		value[i] = 'x'
	}

	begin := time.Now().Add(time.Duration(warmUp) * time.Second)
	end := begin.Add(time.Duration(seconds) * time.Second)
	var times []float64
	measured := false
	var first, last time.Time
	for time.Now().Before(end) {
		transaction(ctx, client, records, value)
		now := time.Now()
		switch {
		case measured:
			times = append(times, now.Sub(last).Seconds()*1000)
		case now.After(begin):
			measured, first = true, now
		}
		last = now
	}
	client.Close()
	sort.Float64s(times)
	check(json.NewEncoder(os.Stdout).Encode(timing{len(times), last.Sub(first).Seconds(), quantile(times, 0.5), quantile(times, 0.99)}))
}

func transaction(ctx context.Context, client *kgo.Client, records int, value []byte) {
	check(client.BeginTransaction())
	for i := 0; i < records; i++ {
		client.Produce(ctx, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) { check(err) })
	}
	check(client.Flush(ctx))
	check(client.EndTransaction(ctx, kgo.TryCommit))
}

func quantile(sorted []float64, part float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(float64(len(sorted)-1)*part+0.5)]
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
