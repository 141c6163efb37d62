#if AsyncHTTP
extension BrowserSession {
  /// Returns the visible texts whose contrast to the nearest opaque background is below 4.5 (WCAG 2.2, 1.4.3).
  ///
  /// - Parameter selector: The CSS selector of the elements to check.
  public func lowContrasts(of selector: String) async throws -> [String] {
    try await evaluate(
      """
      const channels = color => color.match(/[\\d.]+/g).map(Number);
      const luminance = color => {
        const [red, green, blue] = channels(color).map(value => value / 255)
          .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
      };
      const background = element => {
        const color = getComputedStyle(element).backgroundColor;
        return (channels(color)[3] ?? 1) > 0.5 ? color : background(element.parentElement);
      };
      return [...document.querySelectorAll(arguments[0])].flatMap(element => {
        const content = (element.textContent || element.value || "").trim();
        if (content === "" || !element.checkVisibility()) return [];
        const [text, back] = [luminance(getComputedStyle(element).color), luminance(background(element))];
        const contrast = (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05);
        return contrast < 4.5 ? [`${element.className || element.tagName} '${content}': ${contrast.toFixed(2)}`] : [];
      });
      """, [selector])
  }
}
#endif
