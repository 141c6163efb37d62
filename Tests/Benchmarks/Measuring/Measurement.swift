/// What one process has measured: a line of JSON on its way to the process that started it.
struct Measurement: Codable, Sendable {
  /// What a number is about, and its unit.
  enum Quantity: String, Codable, Sendable {
    /// Seconds from start to end.
    case wall
    /// Seconds of processor time, user and system.
    case processor
    /// Bytes, the whole process's.
    case peakMemory
    /// Bytes that the process holds resident at the end.
    case resident
    /// Seconds that one download alone takes.
    case download
    /// Seconds from a bare request's start to its answer's end.
    case roundTrip
    /// Seconds for so many hits in memory, in tasks of their own.
    case hits
    /// Seconds for so many hits in memory, one after another.
    case hitsInTurn
    /// Seconds that the store's own work took, without the way to its executor.
    case own
    /// Seconds that the same took through the asynchronous calls.
    case called
    /// Seconds that the same took through the whole facade.
    case facade
    /// Seconds that the bare system calls, or the bare library's, took.
    case raw
    /// Seconds of processor time that these took.
    case rawProcessor
    /// Seconds for the same work once more, when nothing has changed.
    case secondRun
    /// Seconds that a load took while something else was under way.
    case meanwhile
    /// Seconds until an opened store has answered, and until it knows all entries.
    case firstAnswer
    case wholeIndex
    /// Seconds for a list of all files.
    case list
    case rawList
    /// Nanoseconds of one operation.
    case nanosecondsEach
    /// Hits by look-ups, from 0 to 1.
    case hitRatio
    /// Calls of malloc.
    case allocations
    /// Bytes, by the manager's own count.
    case held
    case requests
    case connections
    case succeeded
    case failed
    case cancelled
    case stored
    case leakedDescriptors
    case leakedLoads
  }

  /// One number a batch.
  private var numbers: [String: [Double]] = [:]
  /// What is not as it must be, in words.
  var failures: [String] = []

  init() {}

  subscript(_ quantity: Quantity) -> [Double] {
    get { numbers[quantity.rawValue] ?? [] }
    set { numbers[quantity.rawValue] = newValue }
  }

  mutating func add(_ value: Double, to quantity: Quantity) { self[quantity].append(value) }

  mutating func add(_ duration: Duration, to quantity: Quantity) { add(duration / .seconds(1), to: quantity) }

  mutating func add(_ count: Int, to quantity: Quantity) { add(Double(count), to: quantity) }

  /// Records a failure unless the count is as expected.
  mutating func check(_ what: String, _ seen: Int, is expected: Int) {
    if seen != expected { failures.append("\(what): \(seen), not \(expected)") }
  }
}
