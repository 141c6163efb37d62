#if ContentDecoding
private import Synchronization

/// Bytes that have passed somewhere; outlives the body that counts them, as metrics do.
final class ByteCount: Sendable {
  private let bytes = Atomic<Int64>(0)

  var value: Int64 { bytes.load(ordering: .relaxed) }

  func add(_ count: Int) { bytes.wrappingAdd(Int64(count), ordering: .relaxed) }
}
#endif
