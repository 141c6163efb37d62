import CacheCore

/// A stopwatch for elapsed time and processor time, which starts when it is created.
struct Stopwatch {
  private let clock = SystemClock()
  private let start: Duration
  private let processorStart: Duration

  init() {
    start = clock.uptime
    processorStart = ProcessUsage.processorTime
  }

  var wall: Duration { clock.uptime - start }
  var processor: Duration { ProcessUsage.processorTime - processorStart }

  /// Adds the times so far to a measurement.
  func stop(_ measurement: inout Measurement) {
    let (wall, processor) = (wall, processor)
    measurement.add(wall, to: .wall)
    measurement.add(processor, to: .processor)
  }
}
