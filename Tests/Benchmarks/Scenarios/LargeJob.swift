#if Origin
import CacheCore
import Foundation

/// Reads one large resource.
struct LargeJob: Job {
  static let name = "large"

  /// Where its bytes go.
  enum Target: String, Codable, Sendable {
    /// Nowhere: they are counted as they come.
    case nothing
    case memory
    case file
  }

  let client: ClientKind
  let target: Target
  let url: String
  /// Read first, so that the connection is there.
  let smallURL: String
  /// Bytes of the body.
  let size: Int
  /// The file for `Target.file`; removed in the end.
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
    // What is checked is not measured: looking at every byte costs more than moving it.
    switch target {
    case .file:
      if try !Pattern.matches(file, count: size) { measurement.failures.append("the file is not the origin's") }
    case .nothing, .memory:
      measurement.check("bytes", seen, is: size)
      if try await !isRight(client, address) { measurement.failures.append("the bytes are not the origin's") }
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
