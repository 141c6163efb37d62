#if AsyncHTTP
public import Foundation

extension BrowserSession {
  /// Changes the properties of the window. The page sees the change immediately, without being reloaded.
  public func emulate(_ options: BrowserOptions) async throws {
    try await perform(
      "Emulation.setDeviceMetricsOverride",
      [
        "width": options.size.width, "height": options.size.height, "deviceScaleFactor": options.scale,
        "mobile": options.isMobile,
      ])
    try await perform("Emulation.setTouchEmulationEnabled", ["enabled": options.isMobile])
    try await perform(
      "Emulation.setEmulatedMedia",
      [
        "media": options.media.rawValue,
        "features": [
          ["name": "prefers-color-scheme", "value": options.colorScheme.rawValue],
          ["name": "prefers-reduced-motion", "value": options.reducesMotion ? "reduce" : "no-preference"],
        ],
      ])
  }

  /// Returns a PNG image of the window, or of the whole page.
  public func screenshot(ofWholePage isWhole: Bool = false) async throws -> Data {
    let image = try await command(
      "Page.captureScreenshot", ["format": "png", "captureBeyondViewport": isWhole], as: Screenshot.self)
    return image.data
  }

  private struct Screenshot: Decodable { let data: Data }
}
#endif
