module strict-types

go 1.25

require (
	github.com/grafana/grafana-foundation-sdk/go v0.0.22
	github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring v0.95.2
	sigs.k8s.io/yaml v1.6.0
)
