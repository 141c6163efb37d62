/// The results of one measuring process, which it prints as a line of JSON.
struct Measurement: Codable, Sendable {
  /// The quantity that a number measures, with its unit.
  enum Quantity: String, Codable, Sendable {
    /// The elapsed time in seconds.
    case wall
    /// The processor time in seconds, user and system.
    case processor
    /// The peak resident memory of the process in bytes.
    case peakMemory
    /// The resident memory of the process at the end in bytes.
    case resident
    /// The time of one download in seconds.
    case download
    /// The time of a bare request in seconds, up to the end of its response.
    case roundTrip
    /// The time in seconds of hits in memory, each in a task of its own.
    case hits
    /// The time in seconds of hits in memory in a single task.
    case hitsInTurn
    /// The time of the store's synchronous work in seconds, without the hop to its executor.
    case own
    /// The time of the same work in seconds, through the asynchronous calls.
    case called
    /// The time of the same work in seconds, through the manager.
    case facade
    /// The time in seconds of the bare system calls or of the peer library.
    case raw
    /// The processor time in seconds of the bare system calls or of the peer library.
    case rawProcessor
    /// The time in seconds of the same work once more, with nothing changed.
    case secondRun
    /// The time of a load in seconds, while other work is in progress.
    case meanwhile
    /// The time in seconds from opening a store to its first entry.
    case firstAnswer
    /// The time in seconds from opening a store until it knows all entries.
    case wholeIndex
    /// The time in seconds of listing all entries.
    case list
    /// The time in seconds of listing all files with bare system calls.
    case rawList
    /// The time of one operation in nanoseconds.
    case nanosecondsEach
    /// The time of one operation in nanoseconds, in the memory store alone.
    case aloneNanosecondsEach
    /// The number of hits divided by the number of lookups.
    case hitRatio
    /// The number of heap allocations.
    case allocations
    /// The memory in bytes that the manager has accounted for.
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

  /// The numbers of each quantity, one per batch.
  private var numbers: [String: [Double]] = [:]
  /// Descriptions of wrong counts and contents.
  var failures: [String] = []

  init() {}

  subscript(_ quantity: Quantity) -> [Double] {
    get { numbers[quantity.rawValue] ?? [] }
    set { numbers[quantity.rawValue] = newValue }
  }

  mutating func add(_ value: Double, to quantity: Quantity) { self[quantity].append(value) }

  mutating func add(_ duration: Duration, to quantity: Quantity) { add(duration / .seconds(1), to: quantity) }

  mutating func add(_ count: Int, to quantity: Quantity) { add(Double(count), to: quantity) }

  /// Records a failure unless the count is the expected one.
  mutating func check(_ what: String, _ seen: Int, is expected: Int) {
    if seen != expected { failures.append("\(what): \(seen), not \(expected)") }
  }
}
