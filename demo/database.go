// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// database is the Collector's own, asked as every client of Prometheus may.
type database struct{ v1.API }

func newDatabase(port int) (database, error) {
	client, err := api.NewClient(api.Config{Address: fmt.Sprintf("http://localhost:%d", port)})
	if err != nil {
		return database{}, err
	}
	return database{v1.NewAPI(client)}, nil
}

// ask answers a query, as of a time, with nothing while the database is not there.
func (d database) ask(ctx context.Context, query string, at time.Time) model.Vector {
	answer, _, err := d.Query(ctx, query, at, v1.WithTimeout(time.Second))
	if err != nil {
		return nil
	}
	vector, _ := answer.(model.Vector)
	return vector
}

// number is the answer to a query that has one series.
func (d database) number(ctx context.Context, query string, at time.Time) (v float64, ok bool) {
	if all := d.ask(ctx, query, at); len(all) == 1 {
		return float64(all[0].Value), true
	}
	return 0, false
}

// label is how Prometheus spells an attribute.
func label(key string) string { return strings.ReplaceAll(key, ".", "_") }

// equals selects the series that have all of these attributes.
func equals(attributes map[string]string) string {
	var all []string
	for key, value := range attributes {
		all = append(all, fmt.Sprintf("%s=%q", label(key), value))
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}
