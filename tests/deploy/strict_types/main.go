// Reads files strictly, into the types of the programs that will read them: manifests of the
// Prometheus operator, one a file, and dashboards of Grafana. What these types do not have is an
// error. scripts/deploy-tools compiles it.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

func checkDashboard(text []byte) error {
	read := dashboard.Dashboard{}
	err := read.UnmarshalJSONStrict(text)
	// Without errors it is an empty list of them, which is not nil.
	if err == nil || err.Error() == "" {
		err = read.Validate()
	}
	if err == nil || err.Error() == "" {
		return nil
	}
	return err
}

func checkManifest(text []byte) error {
	var kind struct{ Kind string }
	if err := yaml.Unmarshal(text, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case "ServiceMonitor":
		return yaml.UnmarshalStrict(text, &monitoring.ServiceMonitor{})
	case "PrometheusRule":
		return yaml.UnmarshalStrict(text, &monitoring.PrometheusRule{})
	}
	return fmt.Errorf("no kind of the operator that the chart uses: %q", kind.Kind)
}

func check(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if filepath.Ext(path) == ".json" {
		return checkDashboard(text)
	}
	return checkManifest(text)
}

func main() {
	plugins.RegisterDefaultPlugins()
	status := 0
	for _, path := range os.Args[1:] {
		if err := check(path); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			status = 1
		}
	}
	os.Exit(status)
}
