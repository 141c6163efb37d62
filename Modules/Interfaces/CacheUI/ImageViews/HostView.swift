internal import Etagere

/// A view of a framework that owns the loaders of its images: `UIView` and `NSView`.
///
/// Its members are the calls of the framework. `ViewImageLoader.owned(by:for:)` makes a loader of them.
@MainActor
package protocol HostView: AnyObject {
  /// The numbers of pixels per point of the view's display and of the main display, or 0 where there is none.
  var displayScales: (own: Double, main: Double) { get }
  /// The size in points.
  var pointSize: (width: Double, height: Double) { get }
  /// Whether the view is in a window.
  var isInWindow: Bool { get }
  /// The loaders of the view, which lives at least as long as they do.
  var ownedLoaders: OwnedLoaders { get }
  /// Adds an invisible subview that fills the view and reports to ``ownedLoaders``, unless the view has one. Requests a layout.
  func addReporter()
  /// Makes a change, with a crossfade if there is a duration.
  func crossfade(_ duration: Duration?, _ change: @escaping @MainActor () -> Void)
}

extension HostView {
  /// The number of pixels per point.
  var pixelsPerPoint: Double { firstDisplayScale(of: displayScales.own, displayScales.main) }

  /// A transform that makes the whole image in the scale of the display.
  var wholeImage: ResourceTransform<DisplayImage> { .displayImage(scale: pixelsPerPoint) }

  /// The state of the view on which a load depends.
  var loadState: ViewState {
    let (scale, points) = (pixelsPerPoint, pointSize)
    let size = PixelSize(viewWidth: points.width, height: points.height, scale: scale)
    return ViewState(size: size, scale: scale, isVisible: isInWindow)
  }
}

/// The state of a view on which a load depends.
struct ViewState {
  /// The size in pixels, or `nil` if the view is empty.
  var size: PixelSize?
  /// The number of pixels per point.
  var scale = 1.0
  /// Whether the view is in a window.
  var isVisible = false
}

/// A change of a view that affects its loads.
enum ViewChange: Sendable {
  /// The view was laid out.
  case layout
  /// The view was added to a window, or removed from it.
  case visibility(Bool)
}

/// A loader of a view, whatever the type of its images.
@MainActor
protocol ViewChangeReceiver: AnyObject {
  func changed(_ change: ViewChange)
}

/// The loaders that a view owns, by place. A place is the name of the property that shows the image, with the state of a button.
@MainActor
package final class OwnedLoaders {
  private var places: [String: any ViewChangeReceiver] = [:]

  package init() {}

  /// Passes a layout of the view to the loaders.
  package func laidOut() { report(.layout) }

  /// Passes the start or the end of the time in a window to the loaders.
  package func moved(isInWindow: Bool) { report(.visibility(isInWindow)) }

  private func report(_ change: ViewChange) {
    for loader in places.values { loader.changed(change) }
  }

  fileprivate func loader<Loader: ViewChangeReceiver>(for place: String, _ create: () -> Loader) -> Loader {
    if let loader = places[place] as? Loader { return loader }
    let loader = create()
    places[place] = loader
    return loader
  }
}

extension ViewImageLoader: ViewChangeReceiver {
  /// Returns the loader for a place in a view, which owns it from the first call on.
  ///
  /// - Parameters:
  ///   - place: The name of the property that shows the image, with the state of a button.
  ///   - make: A function that makes the image of the framework.
  ///   - showIndicator: A function that shows or hides a loading indicator over the view.
  ///   - set: A function that sets the image of the place.
  package static func owned<View: HostView>(
    by view: View, for place: String, make: @escaping (DisplayImage) -> PlatformImage?,
    showIndicator: @escaping @MainActor (_ view: View, _ isVisible: Bool) -> Void = { _, _ in },
    set: @escaping @MainActor (_ view: View, _ image: PlatformImage?) -> Void
  ) -> ViewImageLoader {
    view.ownedLoaders.loader(for: place) { [weak view] in
      ViewImageLoader(
        make: make,
        show: { image, duration in view?.crossfade(duration) { if let view { set(view, image) } } },
        showIndicator: { isVisible in if let view { showIndicator(view, isVisible) } },
        state: { view?.loadState ?? ViewState() }, report: { view?.addReporter() })
    }
  }
}

#if canImport(ObjectiveC)
internal import ObjectiveC

extension OwnedLoaders {
  /// Returns the loaders of an object, which owns them from the first call on.
  static func of(_ object: AnyObject) -> OwnedLoaders {
    if let owned = objc_getAssociatedObject(object, associationKey) as? OwnedLoaders { return owned }
    let owned = OwnedLoaders()
    objc_setAssociatedObject(object, associationKey, owned, .OBJC_ASSOCIATION_RETAIN_NONATOMIC)
    return owned
  }
}

/// The key of the loaders that an object owns. The shared object has one address in the whole process.
@MainActor private let associationKey = UnsafeRawPointer(Unmanaged.passUnretained(AssociationKey.shared).toOpaque())

private final class AssociationKey: Sendable {
  static let shared = AssociationKey()
}
#endif
