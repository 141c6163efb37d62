#if Origin
import CacheCore
import Foundation

/// A load of one large resource.
struct LargeJob: Job {
  static let name = "large"

  /// The destination of the bytes.
  enum Target: String, Codable, Sendable {
    /// No destination: the bytes are counted as they arrive.
    case nothing
    case memory
    case file
  }

  let client: ClientKind
  let target: Target
  let url: String
  /// A resource that is loaded first, to open the connection.
  let smallURL: String
  /// The size of the body in bytes.
  let size: Int
  /// The file for `Target.file`, which is removed afterwards.
  let file: String

  func run() async throws -> Measurement {
    let client = try client.make()
    let (address, file) = (try Address(url), URL(filePath: file))
    defer { try? FileManager.default.removeItem(at: file) }
    var measurement = Measurement()
    try await read(client, Address(smallURL), file)
    let stopwatch = Stopwatch()
    let seen = try await read(client, address, file)
    stopwatch.stop(&measurement)
    if let peak = ProcessUsage.peakMemory { measurement.add(peak, to: .peakMemory) }
    // The contents are checked in another load: checking a byte costs more than moving it.
    switch target {
    case .file:
      if try !Pattern.matches(file, count: size) { measurement.failures.append("the file differs from the origin's") }
    case .nothing, .memory:
      measurement.check("bytes", seen, is: size)
      if try await !isRight(client, address) { measurement.failures.append("the bytes differ from the origin's") }
    }
    try await client.close()
    return measurement
  }

  @discardableResult
  private func read(_ client: any Client, _ address: Address, _ file: URL) async throws -> Int {
    let count = Lock(0)
    switch target {
    case .nothing: try await client.stream(address) { bytes in count.withLock { $0 += bytes.count } }
    case .memory: try await client.load(address) { bytes in count.withLock { $0 += bytes.count } }
    case .file: try await client.save(address, to: file)
    }
    return count.withLock { $0 }
  }

  private func isRight(_ client: any Client, _ address: Address) async throws -> Bool {
    let state = Lock((offset: 0, isRight: true))
    let look: @Sendable (UnsafeRawBufferPointer) -> Void = { bytes in
      state.withLock { state in
        state.isRight = state.isRight && Pattern.matches(bytes, at: state.offset)
        state.offset += bytes.count
      }
    }
    if target == .memory {
      try await client.load(Address("\(address.text)?again"), look)
    } else {
      try await client.stream(address, look)
    }
    return state.withLock { $0.isRight && $0.offset == size }
  }
}
#endif
