/// The names that Kingfisher exports and this package exports too, as an app has them that imports both while it migrates file by
/// file.

/// Named like the one that says where callbacks are called.
public enum CallbackQueue: Sendable {
  case mainAsync, untouched

  /// Says which of the two it is.
  public var name: String { "KingfisherNames.CallbackQueue" }
}

/// Named like the box of a hook.
public final class Delegate<Input, Output> {
  private var block: ((Input) -> Output)?

  public init() {}

  /// Sets the hook.
  public func delegate(_ block: @escaping (Input) -> Output) { self.block = block }

  /// Calls the hook.
  public func call(_ input: Input) -> Output? { block?(input) }
}

/// Named like the object that a session tells.
public final class SessionDelegate {
  public init() {}
}

/// Named like the handle of a download.
public struct DownloadTask: Sendable {
  public var isInitialized = false

  public init() {}
}

/// Named like what changes pictures.
public protocol ImageProcessor: Sendable {
  var identifier: String { get }
}

/// Named like one transfer of a session.
public final class SessionDataTask: Sendable {
  public init() {}

  /// Says which of the two it is.
  public var name: String { "KingfisherNames.SessionDataTask" }
}

/// Named like what a picture's bytes are.
public enum ImageFormat: Sendable {
  case png, unknown

  /// Says which of the two it is.
  public var name: String { "KingfisherNames.ImageFormat" }
}
