// Declarations of MapKit for iOS, with the coordinates of Core Location.
//
// Source: Apple's documentation of MKAnnotation, MKAnnotationView and CLLocationCoordinate2D (iOS 18 SDK).
public import AppleFoundation
@_exported public import UIKit

public struct CLLocationCoordinate2D: Sendable {
  public var latitude: Double
  public var longitude: Double
}

public protocol MKAnnotation: NSObjectProtocol {
  var coordinate: CLLocationCoordinate2D { get }
}

@MainActor
open class MKAnnotationView: UIView {
  public init(annotation: (any MKAnnotation)?, reuseIdentifier: String?) { fatalError() }
  public required init?(coder: NSCoder) { fatalError() }
  open var annotation: (any MKAnnotation)? {
    get { fatalError() }
    set { fatalError() }
  }
  open var image: UIImage? {
    get { fatalError() }
    set { fatalError() }
  }
  open func prepareForReuse() { fatalError() }
  open func prepareForDisplay() { fatalError() }
}
