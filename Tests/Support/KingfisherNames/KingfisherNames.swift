/// Names that both Kingfisher and this package export. During a migration, an app may import both in one file.

/// A stand-in for Kingfisher's callback queue.
public enum CallbackQueue: Sendable {
  case mainAsync, untouched

  /// The name of the enum, to identify it.
  public var name: String { "KingfisherNames.CallbackQueue" }
}

/// A stand-in for Kingfisher's box of a hook.
public final class Delegate<Input, Output> {
  private var block: ((Input) -> Output)?

  public init() {}

  /// Sets the hook.
  public func delegate(_ block: @escaping (Input) -> Output) { self.block = block }

  /// Calls the hook.
  public func call(_ input: Input) -> Output? { block?(input) }
}

/// A stand-in for Kingfisher's delegate of a session.
public final class SessionDelegate {
  public init() {}

  /// The name of the class, to identify it.
  public var name: String { "KingfisherNames.SessionDelegate" }
}

/// A stand-in for Kingfisher's transfer.
public final class SessionDataTask: Sendable {
  public init() {}

  /// The name of the class, to identify it.
  public var name: String { "KingfisherNames.SessionDataTask" }
}

/// A stand-in for Kingfisher's handle of a download.
public struct DownloadTask: Sendable {
  public var isInitialized = false

  public init() {}
}

/// A stand-in for Kingfisher's image processor.
public protocol ImageProcessor: Sendable {
  var identifier: String { get }
}

/// A stand-in for Kingfisher's image format.
public enum ImageFormat: Sendable {
  case png, unknown

  /// The name of the enum, to identify it.
  public var name: String { "KingfisherNames.ImageFormat" }
}
