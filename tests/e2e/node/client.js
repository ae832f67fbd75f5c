// Sends traces, metrics and logs with the OpenTelemetry SDK for Node.js: client.js json|proto|grpc none|gzip URL
const [, , protocol, compression, url] = process.argv;
const suffix = { json: 'http', proto: 'proto', grpc: 'grpc' }[protocol];
const { OTLPTraceExporter } = require(`@opentelemetry/exporter-trace-otlp-${suffix}`);
const { OTLPMetricExporter } = require(`@opentelemetry/exporter-metrics-otlp-${suffix}`);
const { OTLPLogExporter } = require(`@opentelemetry/exporter-logs-otlp-${suffix}`);
const { NodeTracerProvider, BatchSpanProcessor } = require('@opentelemetry/sdk-trace-node');
const { MeterProvider, PeriodicExportingMetricReader } = require('@opentelemetry/sdk-metrics');
const { LoggerProvider, BatchLogRecordProcessor } = require('@opentelemetry/sdk-logs');
const { resourceFromAttributes } = require('@opentelemetry/resources');
const { SpanKind, SpanStatusCode, context, trace } = require('@opentelemetry/api');

const target = (signal) => ({ url: protocol === 'grpc' ? url : `${url}/v1/${signal}`, compression });

async function main() {
  const resource = resourceFromAttributes({ 'service.name': 'node-client/agent', answer: 42, ratio: 0.25, on: true, list: ['a', 'b'] });
  const tracers = new NodeTracerProvider({ resource, spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter(target('traces')))] });
  const tracer = tracers.getTracer('node.scope', '1.0.0');
  const parent = tracer.startSpan('node-parent', { kind: SpanKind.SERVER, attributes: { route: '/größe', code: 200, pi: 3.5 } });
  const inside = trace.setSpan(context.active(), parent);
  const child = tracer.startSpan('node-child', { links: [{ context: parent.spanContext(), attributes: { why: 'test' } }] }, inside);
  child.recordException(new Error('no vacancy'));
  child.setStatus({ code: SpanStatusCode.ERROR, message: 'no vacancy' });
  child.end();
  parent.end();

  const reader = new PeriodicExportingMetricReader({ exporter: new OTLPMetricExporter(target('metrics')), exportIntervalMillis: 3600000 });
  const meters = new MeterProvider({ resource, readers: [reader] });
  const meter = meters.getMeter('node.meter', '1');
  meter.createCounter('node.count', { unit: '{guest}' }).add(3, { room: '101' });
  meter.createGauge('node.gauge').record(0.5);
  const histogram = meter.createHistogram('node.histogram', { unit: 'ms' });
  for (const value of [1, 20, 300]) histogram.record(value);

  const loggers = new LoggerProvider({ resource, processors: [new BatchLogRecordProcessor({ exporter: new OTLPLogExporter(target('logs')) })] });
  const logger = loggers.getLogger('node.logger', '1');
  logger.emit({ body: 'hello ✓', severityNumber: 9, severityText: 'INFO', attributes: { nested: { x: { y: 1 } } }, context: inside });
  logger.emit({ body: { k: [1, 'two', 2.5, true] }, severityNumber: 17 });

  for (const provider of [meters, tracers, loggers]) await provider.shutdown();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
