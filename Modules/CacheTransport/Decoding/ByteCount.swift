#if ContentDecoding
private import Synchronization

/// A byte counter that outlives its body, because the metrics use it.
final class ByteCount: Sendable {
  private let bytes = Atomic<Int64>(0)

  var value: Int64 { bytes.load(ordering: .relaxed) }

  func add(_ count: Int) { bytes.wrappingAdd(Int64(count), ordering: .relaxed) }
}
#endif
