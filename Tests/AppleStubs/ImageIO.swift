// swift-format-ignore-file: AlwaysUseLowerCamelCase
// Declarations of Image I/O.
public import CoreGraphics

public final class CGImageSource {}
public final class CGImageDestination {}

public enum CGImageSourceStatus: Int32, Sendable {
  case statusUnexpectedEOF = -5
  case statusInvalidData, statusUnknownType, statusReadingHeader, statusIncomplete, statusComplete
}

public func CGImageSourceCreateWithData(_ data: CFData, _ options: CFDictionary?) -> CGImageSource? { fatalError() }
public func CGImageSourceGetType(_ source: CGImageSource) -> CFString? { fatalError() }
public func CGImageSourceGetCount(_ source: CGImageSource) -> Int { fatalError() }
public func CGImageSourceGetStatusAtIndex(_ source: CGImageSource, _ index: Int) -> CGImageSourceStatus { fatalError() }
public func CGImageSourceCopyProperties(_ source: CGImageSource, _ options: CFDictionary?) -> CFDictionary? { fatalError() }
public func CGImageSourceCopyPropertiesAtIndex(
  _ source: CGImageSource, _ index: Int, _ options: CFDictionary?
) -> CFDictionary? { fatalError() }
public func CGImageSourceCreateThumbnailAtIndex(
  _ source: CGImageSource, _ index: Int, _ options: CFDictionary?
) -> CGImage? { fatalError() }
public func CGImageDestinationCreateWithData(
  _ data: CFMutableData, _ type: CFString, _ count: Int, _ options: CFDictionary?
) -> CGImageDestination? { fatalError() }
public func CGImageDestinationAddImage(_ destination: CGImageDestination, _ image: CGImage, _ properties: CFDictionary?) {
  fatalError()
}
public func CGImageDestinationFinalize(_ destination: CGImageDestination) -> Bool { fatalError() }

public let kCGImageDestinationLossyCompressionQuality: CFString = ""
public let kCGImagePropertyAPNGLoopCount: CFString = ""
public let kCGImagePropertyAPNGUnclampedDelayTime: CFString = ""
public let kCGImagePropertyColorModel: CFString = ""
public let kCGImagePropertyDepth: CFString = ""
public let kCGImagePropertyGIFDictionary: CFString = ""
public let kCGImagePropertyGIFLoopCount: CFString = ""
public let kCGImagePropertyGIFUnclampedDelayTime: CFString = ""
public let kCGImagePropertyHasAlpha: CFString = ""
public let kCGImagePropertyJFIFDictionary: CFString = ""
public let kCGImagePropertyJFIFIsProgressive: CFString = ""
public let kCGImagePropertyOrientation: CFString = ""
public let kCGImagePropertyPixelHeight: CFString = ""
public let kCGImagePropertyPixelWidth: CFString = ""
public let kCGImagePropertyPNGDictionary: CFString = ""
public let kCGImagePropertyPNGInterlaceType: CFString = ""
public let kCGImagePropertyProfileName: CFString = ""
public let kCGImagePropertyWebPDictionary: CFString = ""
public let kCGImagePropertyWebPLoopCount: CFString = ""
public let kCGImagePropertyWebPUnclampedDelayTime: CFString = ""
public let kCGImageSourceCreateThumbnailFromImageAlways: CFString = ""
public let kCGImageSourceCreateThumbnailWithTransform: CFString = ""
public let kCGImageSourceShouldCache: CFString = ""
public let kCGImageSourceShouldCacheImmediately: CFString = ""
public let kCGImageSourceThumbnailMaxPixelSize: CFString = ""
