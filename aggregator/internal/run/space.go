package run

import (
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/disk"
)

// maxMinFree and minFreePart bound the space that is kept free where the
// configuration does not say how much: the smaller of the two, so that a small
// disk can be used too.
const (
	maxMinFree  = 512 << 20
	minFreePart = 20 // a twentieth of the file system
)

// space makes the guard of the disk that dir is on, with its metrics. A min of
// zero is the default.
func space(dir string, least int64, metrics prometheus.Registerer, log *slog.Logger) (*disk.Guard, error) {
	if least == 0 {
		size, err := disk.Size(dir)
		if err != nil {
			return nil, fmt.Errorf("size of the file system of %s: %w", dir, err)
		}
		least = int64(min(maxMinFree, size/minFreePart))
	}
	guard := disk.NewGuard(dir, least, log)
	metrics.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "bursar_disk_free_bytes", Help: "Space that is free on the file system of the data directory."}, func() float64 {
			free, err := disk.Free(dir)
			if err != nil {
				return 0
			}
			return float64(free)
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "bursar_disk_min_free_bytes", Help: "Below so much free space writes wait."}, func() float64 { return float64(least) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "bursar_writes_paused", Help: "1 while writes wait for space on the disk."}, func() float64 {
			if guard.Check() != nil {
				return 1
			}
			return 0
		}),
	)
	return guard, nil
}
