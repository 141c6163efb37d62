#if canImport(ObjectiveC)
internal import ObjectiveC

/// The key under which an image view owns its binding. A selector has one address in the whole process.
@MainActor let bindingKey = UnsafeRawPointer(Unmanaged.passUnretained(BindingKey.shared).toOpaque())

private final class BindingKey: Sendable {
  static let shared = BindingKey()
}
#endif
