/// Names that both Kingfisher and this package export. During a migration, an app may import both in one file.

/// A stand-in for Kingfisher's callback queue.
public enum CallbackQueue: Sendable {
  case mainAsync, untouched

  /// The name of the enum, to identify it.
  public var name: String { "KingfisherNames.CallbackQueue" }
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
