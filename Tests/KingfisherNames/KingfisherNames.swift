/// The names that Kingfisher exports and this package exports too, as an app has them that imports both while it migrates file by
/// file.

/// Named like the one that says where callbacks are called.
public enum CallbackQueue: Sendable {
  case mainAsync, untouched

  /// Says which of the two it is.
  public var name: String { "KingfisherNames.CallbackQueue" }
}

/// Named like what changes pictures.
public protocol ImageProcessor: Sendable {
  var identifier: String { get }
}

/// Named like what a picture's bytes are.
public enum ImageFormat: Sendable {
  case png, unknown

  /// Says which of the two it is.
  public var name: String { "KingfisherNames.ImageFormat" }
}
