#if canImport(ObjectiveC)
internal import ObjectiveC

/// The key of the binding that an image view owns. The shared object has one address in the whole process.
@MainActor let bindingKey = UnsafeRawPointer(Unmanaged.passUnretained(BindingKey.shared).toOpaque())

private final class BindingKey: Sendable {
  static let shared = BindingKey()
}
#endif
