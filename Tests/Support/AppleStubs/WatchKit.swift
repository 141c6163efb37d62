// Declarations of WatchKit. The images are those of UIKit, as on watchOS.
//
// Source: Apple's documentation of WKInterfaceObject, WKInterfaceImage and WKInterfaceController (watchOS 11 SDK).
public import AppleFoundation
@_exported public import UIKit

@MainActor
open class WKInterfaceObject: NSObject {}

@MainActor
open class WKInterfaceImage: WKInterfaceObject {
  open func setImage(_ image: UIImage?) { fatalError() }
}

@MainActor
open class WKInterfaceController: NSObject {
  public override init() { fatalError() }
  open func awake(withContext context: Any?) { fatalError() }
}
