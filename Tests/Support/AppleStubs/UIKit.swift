// swift-format-ignore-file: AlwaysUseLowerCamelCase

@_exported public import AppleFoundation
// Declarations of UIKit.
//
// Source: Apple's documentation of UIImage, UIGraphicsImageRenderer, UIView, UIImageView, UIControl, UIButton, UILabel,
// UIActivityIndicatorView, UIBarButtonItem, NSTextAttachment, UITraitCollection, UIAccessibility,
// UICollectionViewDataSourcePrefetching, UITableViewDataSourcePrefetching and UIApplication (iOS 18 SDK).
@_exported public import CoreGraphics
@_exported public import QuartzCore

// MARK: Images

// Proof of `@unchecked Sendable`: a declaration without state. UIKit's own class is declared Sendable.
open class UIImage: NSObject, @unchecked Sendable {
  public enum Orientation: Int, Sendable { case up }
  public enum RenderingMode: Int, Sendable { case automatic, alwaysOriginal, alwaysTemplate }

  public init(cgImage: CGImage, scale: CGFloat, orientation: Orientation) { fatalError() }
  public init?(systemName name: String) { fatalError() }
  open var cgImage: CGImage? { fatalError() }
  open var imageOrientation: Orientation { fatalError() }
  open var isSymbolImage: Bool { fatalError() }
  open var scale: CGFloat { fatalError() }
  open var size: CGSize { fatalError() }
  open func draw(at point: CGPoint) { fatalError() }
  open func withRenderingMode(_ renderingMode: RenderingMode) -> UIImage { fatalError() }
}

open class UIGraphicsImageRendererFormat: NSObject {
  public enum Range: Int, Sendable { case standard }

  open var scale: CGFloat {
    get { fatalError() }
    set { fatalError() }
  }
  open var opaque: Bool {
    get { fatalError() }
    set { fatalError() }
  }
  open var preferredRange: Range {
    get { fatalError() }
    set { fatalError() }
  }
}

open class UIGraphicsImageRendererContext: NSObject {}

open class UIGraphicsImageRenderer: NSObject {
  public init(size: CGSize, format: UIGraphicsImageRendererFormat) { fatalError() }
  open func image(actions: (UIGraphicsImageRendererContext) -> Void) -> UIImage { fatalError() }
}

// MARK: Views

// Proof of `@unchecked Sendable`: a declaration without state. UIKit's own class is declared Sendable.
open class UITraitCollection: NSObject, @unchecked Sendable {
  open class var current: UITraitCollection {
    get { fatalError() }
    set { fatalError() }
  }
  open var displayScale: CGFloat { fatalError() }
}

@MainActor
open class UIResponder: NSObject {}

@MainActor
open class UIView: UIResponder {
  public struct AnimationOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static var allowUserInteraction: AnimationOptions { fatalError() }
    public static var transitionCrossDissolve: AnimationOptions { fatalError() }
  }

  public struct AutoresizingMask: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static var flexibleWidth: AutoresizingMask { fatalError() }
    public static var flexibleHeight: AutoresizingMask { fatalError() }
    public static var flexibleLeftMargin: AutoresizingMask { fatalError() }
    public static var flexibleRightMargin: AutoresizingMask { fatalError() }
    public static var flexibleTopMargin: AutoresizingMask { fatalError() }
    public static var flexibleBottomMargin: AutoresizingMask { fatalError() }
  }

  public override init() { fatalError() }
  public init(frame: CGRect) { fatalError() }
  public required init?(coder: NSCoder) { fatalError() }
  open func addSubview(_ view: UIView) { fatalError() }
  open var autoresizingMask: AutoresizingMask {
    get { fatalError() }
    set { fatalError() }
  }
  open var clipsToBounds: Bool {
    get { fatalError() }
    set { fatalError() }
  }
  open var isUserInteractionEnabled: Bool {
    get { fatalError() }
    set { fatalError() }
  }
  open var center: CGPoint {
    get { fatalError() }
    set { fatalError() }
  }
  open var layer: CALayer { fatalError() }
  open func didMoveToWindow() { fatalError() }
  open func layoutSubviews() { fatalError() }
  open func removeFromSuperview() { fatalError() }
  open func setNeedsDisplay() { fatalError() }
  open func setNeedsLayout() { fatalError() }
  open var subviews: [UIView] { fatalError() }
  open var superview: UIView? { fatalError() }
  open var window: UIWindow? { fatalError() }
  open class func transition(
    with view: UIView, duration: TimeInterval, options: AnimationOptions = [], animations: (() -> Void)?,
    completion: ((Bool) -> Void)? = nil
  ) { fatalError() }
  open var bounds: CGRect {
    get { fatalError() }
    set { fatalError() }
  }
  open var traitCollection: UITraitCollection { fatalError() }
}

@MainActor
open class UIWindow: UIView {}

@MainActor
open class UIImageView: UIView {
  open var image: UIImage? {
    get { fatalError() }
    set { fatalError() }
  }
}

@MainActor
open class UIActivityIndicatorView: UIView {
  public enum Style: Int, Sendable {
    case medium = 100
    case large = 101
  }
  public init(style: Style) { fatalError() }
  public override init(frame: CGRect) { fatalError() }
  public required init(coder: NSCoder) { fatalError() }
  open func startAnimating() { fatalError() }
  open func stopAnimating() { fatalError() }
}

@MainActor
open class UILabel: UIView {
  open var attributedText: NSAttributedString? {
    get { fatalError() }
    set { fatalError() }
  }
}

// MARK: Controls

@MainActor
open class UIControl: UIView {
  public struct State: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static var normal: State { State(rawValue: 0) }
    public static var highlighted: State { State(rawValue: 1) }
  }
}

@MainActor
open class UIButton: UIControl {
  open func setImage(_ image: UIImage?, for state: UIControl.State) { fatalError() }
  open func setBackgroundImage(_ image: UIImage?, for state: UIControl.State) { fatalError() }
}

// MARK: Bar items and text

@MainActor
open class UIBarItem: NSObject {
  open var image: UIImage? {
    get { fatalError() }
    set { fatalError() }
  }
}

@MainActor
open class UIBarButtonItem: UIBarItem {
  public override init() { fatalError() }
}

open class NSTextAttachment: NSObject {
  public override init() { fatalError() }
  open var bounds: CGRect {
    get { fatalError() }
    set { fatalError() }
  }
  open var image: UIImage? {
    get { fatalError() }
    set { fatalError() }
  }
}

extension NSAttributedString {
  public convenience init(attachment: NSTextAttachment) { fatalError() }
}

@MainActor public enum UIAccessibility {
  public static var isReduceMotionEnabled: Bool { fatalError() }
}

// MARK: Lists

@MainActor open class UICollectionView: UIView {}
@MainActor open class UICollectionViewCell: UIView {}
@MainActor open class UITableView: UIView {}

@MainActor
public protocol UICollectionViewDataSourcePrefetching: NSObjectProtocol {
  func collectionView(_ collectionView: UICollectionView, prefetchItemsAt indexPaths: [IndexPath])
  func collectionView(_ collectionView: UICollectionView, cancelPrefetchingForItemsAt indexPaths: [IndexPath])
}

@MainActor
public protocol UITableViewDataSourcePrefetching: NSObjectProtocol {
  func tableView(_ tableView: UITableView, prefetchRowsAt indexPaths: [IndexPath])
  func tableView(_ tableView: UITableView, cancelPrefetchingForRowsAt indexPaths: [IndexPath])
}

// MARK: The application

public struct UIBackgroundTaskIdentifier: Hashable, RawRepresentable, Sendable {
  public let rawValue: Int
  public init(rawValue: Int) { self.rawValue = rawValue }
}

@MainActor
open class UIApplication: UIResponder {
  public enum State: Int, Sendable { case active, inactive, background }
  open var applicationState: State { fatalError() }
  open func beginBackgroundTask(
    withName name: String?, expirationHandler handler: (@MainActor @Sendable () -> Void)? = nil
  ) -> UIBackgroundTaskIdentifier { fatalError() }
  open func endBackgroundTask(_ identifier: UIBackgroundTaskIdentifier) { fatalError() }
}
