/// The properties of a browser's window that a page can detect.
public struct BrowserOptions: Sendable {
  /// The value of `prefers-color-scheme`.
  public enum ColorScheme: String, Sendable {
    case light
    case dark
  }

  /// The media type for style sheets.
  public enum Media: String, Sendable {
    case screen
    case print
  }

  /// The size of the viewport, in CSS pixels.
  public struct Size: Sendable, Hashable {
    public var width: Int
    public var height: Int

    public init(width: Int, height: Int) { (self.width, self.height) = (width, height) }

    /// The window of a small laptop.
    public static let desktop = Size(width: 1280, height: 900)
    /// A phone in portrait orientation.
    public static let phone = Size(width: 390, height: 844)
  }

  public var size = Size.desktop
  /// Whether the window has a touch screen and the layout of a phone: the viewport's `meta` element applies.
  public var isMobile = false
  /// The number of device pixels per CSS pixel.
  public var scale = 1.0
  public var colorScheme = ColorScheme.light
  public var media = Media.screen
  /// The value of `prefers-reduced-motion`. The default is `reduce`, so that no test waits for an animation.
  public var reducesMotion = true
  /// The time limit of a script in ``BrowserSession/evaluate(_:_:as:)``.
  public var scriptTimeout = Duration.seconds(300)

  public init(_ change: (inout Self) -> Void = { _ in }) { change(&self) }

  /// A phone: its size, two device pixels per CSS pixel, and a touch screen.
  public static var phone: Self {
    Self {
      $0.size = .phone
      $0.isMobile = true
      $0.scale = 2
    }
  }
}
