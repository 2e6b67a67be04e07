"""What the page's timeline is drawn from: numbers for the scripts, and a picture for when there are none."""
