"""Programs unlike those that the rules were made with: are the steps, the lead and the savings true, or said to be unsure?"""
