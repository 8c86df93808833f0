// node:perf_hooks: the global performance.
const { performance, PerformanceEntry, PerformanceMark, PerformanceMeasure, PerformanceObserver } = globalThis as any;
export { performance, PerformanceEntry, PerformanceMark, PerformanceMeasure, PerformanceObserver };
export default { performance, PerformanceEntry, PerformanceMark, PerformanceMeasure, PerformanceObserver };
